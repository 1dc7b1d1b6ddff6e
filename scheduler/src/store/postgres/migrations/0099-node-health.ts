/**
 * The figures of each process that alarm rules read: how long its statements take (the median of its last heartbeats, in ms, without the
 * time for which the process itself was busy), and since when it relies on the store because its coordination service does not show its
 * session.
 */
export const nodeHealth = (s: string) => `
alter table ${s}.session add column store_wait_ms int;
alter table ${s}.session add column uncoordinated_ms bigint;
`;
