/**
 * The run that stands for a key for a time: see enqueue/known-keys.ts. `run.since_ms`: the first enqueue that a run stands for, where the
 * enqueues that replace each other have a bound in time. Nodes of older code do neither.
 */
export const knownKeys = (s: string) => `
create table ${s}.known_key (
  task_id int not null,
  key text not null,
  run_id bigint not null,
  until_ms bigint not null,
  primary key (task_id, key)
);
create index known_key_until on ${s}.known_key (until_ms);
alter table ${s}.run add column since_ms bigint;
`;
