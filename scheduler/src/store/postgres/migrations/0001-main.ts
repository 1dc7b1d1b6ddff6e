/**
 * The first schema. Times are bigint epoch milliseconds by the store's clock: JavaScript uses the same numbers, and no session's time zone
 * or date style can change them. A name that ends in _ms holds a time or a duration in milliseconds.
 */
export const main = (s: string) => `
create table ${s}.cluster (
  one boolean primary key default true check (one),
  id uuid not null default gen_random_uuid(),
  created_ms bigint not null
);

-- One row a process that takes part. A session's beat is a counter: observers judge silence by their own monotonic
-- clocks, so no two clocks are ever compared.
create table ${s}.session (
  id bigint generated always as identity primary key,
  node text not null,
  role text not null,
  host text not null,
  pid int not null,
  version text not null,
  beat bigint not null default 0,
  timeout_ms int not null,
  started_ms bigint not null,
  seen_ms bigint not null,
  ended_ms bigint,
  ended_why text,
  swept boolean not null default false
) with (fillfactor = 50);
create unique index session_live_node on ${s}.session (node) where ended_ms is null;
create index session_unswept on ${s}.session (ended_ms) where ended_ms is not null and not swept;

create table ${s}.leadership (
  one boolean primary key default true check (one),
  term bigint not null,
  session_id bigint
) with (fillfactor = 50);
insert into ${s}.leadership (term, session_id) values (0, null);

create table ${s}.term (
  term bigint primary key,
  session_id bigint not null,
  node text not null,
  elected_ms bigint not null,
  ended_ms bigint,
  ended_why text
);

create table ${s}.worker_group (
  id int generated always as identity primary key,
  name text not null unique
);

create table ${s}.task (
  id int generated always as identity primary key,
  name text not null unique,
  version int not null,
  group_id int not null references ${s}.worker_group,
  definition jsonb not null,
  definition_text text not null,
  gate smallint not null,
  gate_limit int,
  paused_ms bigint,
  paused_by text,
  paused_why text,
  deleted_ms bigint,
  created_ms bigint not null,
  changed_ms bigint not null
);
create index task_changed on ${s}.task (changed_ms);

create table ${s}.task_version (
  task_id int not null references ${s}.task,
  version int not null,
  definition jsonb not null,
  author text not null,
  reason text not null,
  changed_ms bigint not null,
  primary key (task_id, version)
);

-- What planner and claims need of a task, kept narrow: the definition is fat and rarely wanted.
create table ${s}.plan (
  task_id int primary key references ${s}.task,
  version int not null,
  next_slot_ms bigint,
  after_end_ms bigint,
  paused boolean not null default false
) with (fillfactor = 70);
create index plan_next on ${s}.plan (next_slot_ms) where next_slot_ms is not null;

-- A task with an overlap limit has a row here: the lock under which its places are given out.
create table ${s}.gate (
  task_id int primary key references ${s}.task
);

create sequence ${s}.run_id;
create sequence ${s}.fence;

-- The ledger: a slot is accepted at most once because it is this table's key.
create table ${s}.slot (
  task_id int not null,
  slot_ms bigint not null,
  outcome smallint not null,
  run_id bigint,
  reason text,
  term bigint,
  accepted_ms bigint not null,
  primary key (task_id, slot_ms)
) partition by range (slot_ms);

create table ${s}.slot_range (
  id bigint generated always as identity primary key,
  task_id int not null references ${s}.task,
  version int not null,
  from_ms bigint not null,
  to_ms bigint not null,
  slots bigint,
  outcome smallint not null,
  reason text not null,
  recorded_ms bigint not null
);
create index slot_range_task on ${s}.slot_range (task_id, to_ms);

-- Live runs only. state: 0 held, 1 paused, 2 ready, 3 claimed.
create table ${s}.run (
  id bigint primary key,
  due_ms bigint not null,
  slot_ms bigint,
  fence bigint,
  session_id bigint,
  claimed_ms bigint,
  created_ms bigint not null,
  started_ms bigint,
  task_id int not null,
  group_id int not null,
  version int not null,
  attempt int not null default 0,
  state smallint not null,
  priority smallint not null,
  gate smallint not null default 0,
  after_end boolean not null default false,
  recall smallint not null default 0,
  source smallint not null,
  key text,
  recall_why text,
  payload jsonb,
  progress jsonb
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
create index run_ready on ${s}.run (group_id, priority desc, due_ms) where state = 2;
create index run_claimed on ${s}.run (session_id) where state = 3;
create index run_gated on ${s}.run (task_id, state) where gate > 0;
create index run_held on ${s}.run (due_ms) where state = 0 and gate > 1;
create index run_task on ${s}.run (task_id, due_ms);
create unique index run_key on ${s}.run (task_id, key) where key is not null;

create table ${s}.run_history (
  id bigint not null,
  due_ms bigint not null,
  slot_ms bigint,
  fence bigint,
  session_id bigint,
  claimed_ms bigint,
  created_ms bigint not null,
  started_ms bigint,
  ended_ms bigint not null,
  task_id int not null,
  version int not null,
  attempt int not null,
  outcome smallint not null,
  priority smallint not null,
  source smallint not null,
  key text,
  payload jsonb,
  result jsonb,
  error jsonb
) partition by range (ended_ms);
create index run_history_id on ${s}.run_history (id);
create index run_history_task on ${s}.run_history (task_id, ended_ms);

-- Attempts that did not end their run; the last one is told by the run's own row.
create table ${s}.attempt (
  run_id bigint not null,
  attempt int not null,
  fence bigint not null,
  session_id bigint not null,
  claimed_ms bigint,
  started_ms bigint,
  ended_ms bigint not null,
  outcome text not null,
  error jsonb
) partition by range (ended_ms);
create index attempt_run on ${s}.attempt (run_id);

-- Verdicts that came too late: refused, recorded, never applied.
create table ${s}.late_result (
  run_id bigint not null,
  fence bigint not null,
  session_id bigint not null,
  outcome smallint not null,
  at_ms bigint not null,
  error jsonb
) partition by range (at_ms);
create index late_result_run on ${s}.late_result (run_id);

create table ${s}.run_log (
  run_id bigint not null,
  attempt int not null,
  at_ms bigint not null,
  level smallint not null,
  message text not null,
  fields jsonb
) partition by range (at_ms);
create index run_log_run on ${s}.run_log (run_id, at_ms);

-- Counters: what ended is added as a row of its own, so many runs ending at once wait for nobody; one reader folds.
create table ${s}.tally (
  task_id int primary key references ${s}.task,
  succeeded bigint not null default 0,
  failed bigint not null default 0,
  cancelled bigint not null default 0,
  skipped bigint not null default 0,
  missed bigint not null default 0,
  retried bigint not null default 0
) with (fillfactor = 70);
create table ${s}.tally_delta (
  task_id int not null,
  succeeded int not null default 0,
  failed int not null default 0,
  cancelled int not null default 0,
  skipped int not null default 0,
  missed int not null default 0,
  retried int not null default 0
);
create index tally_delta_task on ${s}.tally_delta (task_id);
`;
