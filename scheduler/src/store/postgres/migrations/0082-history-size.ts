/**
 * A limit on the size of a namespace's history, and the leader's last estimate of this size, in bytes. Older servers do not check the
 * limit.
 */
export const historySize = (s: string) => `
alter table ${s}.quota add column history bigint;
create table ${s}.history_size (
  namespace text primary key,
  bytes bigint not null,
  measured_ms bigint not null
);
`;
