/**
 * Runs that other runs caused. `parent_id` is the run that spawned this run, or that this run follows, joins or continues; `source` says
 * which. `inputs` are the runs that it follows, if there are several, or the run that it continues. `origin` is the first cause: the time
 * of a slot, or the number of a run without a slot; the ranges of the two do not overlap. `checkpoint` is the state that the handler saved.
 * All are null, and take no space, in runs that are not linked to other runs.
 *
 * `follow` has a row for each task that follows another. `plan.followed` is true for a task that has followers, so that a claim reads this
 * without a further query. `arrival` records which predecessors' runs have ended, for tasks with several predecessors. `gathering` contains
 * the runs to be created once all children of a run have ended.
 */
export const flow = (s: string) => `
alter table ${s}.run add column parent_id bigint, add column origin bigint, add column inputs bigint[], add column checkpoint jsonb;
create index run_parent on ${s}.run (parent_id) where parent_id is not null;
alter table ${s}.run_history add column parent_id bigint, add column inputs bigint[];
create index run_history_parent on ${s}.run_history (parent_id) where parent_id is not null;
alter table ${s}.plan add column followed boolean not null default false;
create table ${s}.follow (
  upstream_id int not null references ${s}.task,
  task_id int not null references ${s}.task,
  ends smallint not null,
  several boolean not null,
  primary key (upstream_id, task_id)
);
create index follow_task on ${s}.follow (task_id);
create table ${s}.arrival (
  task_id int not null,
  origin bigint not null,
  upstream_id int not null,
  run_id bigint not null,
  slot_ms bigint,
  at_ms bigint not null,
  primary key (task_id, origin, upstream_id)
);
create table ${s}.gathering (
  parent_id bigint primary key,
  task_id int not null,
  payload jsonb,
  slot_ms bigint,
  origin bigint not null,
  at_ms bigint not null
);
`;
