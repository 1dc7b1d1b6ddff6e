/** A quota of a namespace's history, and how many bytes that takes: the leader's last estimate. Older servers do not check the quota. */
export const historySize = (s: string) => `
alter table ${s}.quota add column history bigint;
create table ${s}.history_size (
  namespace text primary key,
  bytes bigint not null,
  measured_ms bigint not null
);
`;
