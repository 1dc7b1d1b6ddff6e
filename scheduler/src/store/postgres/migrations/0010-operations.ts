/**
 * Dead letters: one row for each run that failed finally, in daily partitions like the history, with the same retention. State 0 is open, 1
 * redriven, 2 dismissed. Only open ones are in a separate index, which has all columns needed to count them.
 *
 * An operation's position (cursor, batch) and its counts change in the same transaction as its work. `steps` counts these changes and is
 * the fence of the process that executes a batch.
 *
 * A version of a calendar never changes, so it is possible to read later by which days a task was planned.
 */
export const operations = (s: string) => `
create table ${s}.dead_letter (
  run_id bigint not null,
  ended_ms bigint not null,
  task_id int not null,
  fingerprint text not null,
  state smallint not null default 0,
  redriven_by bigint,
  operation_id bigint,
  primary key (run_id, ended_ms)
) partition by range (ended_ms);
create index dead_letter_open on ${s}.dead_letter (ended_ms, run_id) include (task_id, fingerprint) where state = 0;
create index dead_letter_redriven on ${s}.dead_letter (redriven_by) where redriven_by is not null;

create table ${s}.operation (
  id bigint generated always as identity primary key,
  token text not null unique,
  kind text not null,
  filter jsonb not null,
  range jsonb,
  author text not null,
  reason text not null,
  state text not null default 'running',
  total bigint not null,
  done bigint not null default 0,
  passed bigint not null default 0,
  failed bigint not null default 0,
  error text,
  last_run_id bigint not null,
  cursor jsonb not null default '{}',
  batch jsonb,
  steps bigint not null default 0,
  next_ms bigint not null,
  stepped_ms bigint not null,
  created_ms bigint not null,
  started_ms bigint,
  ended_ms bigint
) with (fillfactor = 50);
create index operation_open on ${s}.operation (next_ms) where ended_ms is null;

create table ${s}.calendar (
  id int generated always as identity primary key,
  name text not null unique,
  version int not null,
  removed_ms bigint
);
create table ${s}.calendar_version (
  calendar_id int not null references ${s}.calendar,
  version int not null,
  content jsonb not null,
  author text not null,
  reason text not null,
  changed_ms bigint not null,
  primary key (calendar_id, version)
);
`;
