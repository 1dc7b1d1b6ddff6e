/**
 * The run that a key refers to for some time: see enqueue/known-keys.ts. `run.since_ms` is the time of the first of several enqueues that
 * replaced each other, if `maxWait` limits how long they may postpone the run. Nodes of older versions write neither.
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
