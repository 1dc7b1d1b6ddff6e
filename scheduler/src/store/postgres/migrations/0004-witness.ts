/**
 * A session may depend on a coordination service instead of its heartbeat. The store records which service the cluster uses, so that one
 * cluster never uses two.
 */
export const witness = (s: string) => `
alter table ${s}.session add column witnessed boolean not null default false;
alter table ${s}.cluster add column coordination text;
`;
