/**
 * Runs that come from runs. `parent_id`: the run that spawned this one, or that it comes after, joins or goes on from; `source` says which.
 * `inputs`: the runs that it comes after, if there are several, or the one that it goes on from. `origin`: the first cause, which is a
 * slot's time or the number of a run without a slot; the two ranges never meet. `checkpoint`: the handler's own state. All are null, and
 * cost nothing, in runs that are not linked to other runs.
 *
 * `follow` has a row for each task that comes after another. `plan.followed` marks a task that has followers, so that a claim reads it
 * without a further query. `arrival` holds the ends that a task with several predecessors has seen so far. `gathering` holds the runs to
 * make once all children of a run have ended.
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
