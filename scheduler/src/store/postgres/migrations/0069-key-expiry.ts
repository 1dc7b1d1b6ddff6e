/**
 * The time at which a worker key expires. From then on servers refuse the key, and the leader revokes it within a minute. Servers of older
 * versions refuse the key once it is revoked.
 */
export const keyExpiry = (s: string) => `
alter table ${s}.worker_key add column expires_ms bigint;
create index worker_key_expires on ${s}.worker_key (expires_ms) where revoked_ms is null and expires_ms is not null;
`;
