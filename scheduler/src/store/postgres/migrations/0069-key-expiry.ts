/**
 * A worker key may have an expiry. Servers refuse the key from then on, and the leader revokes it within a minute. Servers of older code
 * refuse it once it is revoked.
 */
export const keyExpiry = (s: string) => `
alter table ${s}.worker_key add column expires_ms bigint;
create index worker_key_expires on ${s}.worker_key (expires_ms) where revoked_ms is null and expires_ms is not null;
`;
