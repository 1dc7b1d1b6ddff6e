/**
 * Routing, limits and fairness. The index `run_task` gets other columns and keeps its size: by state and priority it also finds the ready
 * runs of one task, so that a task is served although another task has a backlog. Columns of features that a task does not use are null.
 *
 * A run that is still to be addressed to a worker has the group 0. The group of an addressed run is the negative number of the session to
 * which it is addressed. So other workers, which search the ready index by their own groups, find neither.
 */
export const routing = (s: string) => `
drop index ${s}.run_task;
create index run_task on ${s}.run (task_id, state, priority desc, due_ms);
drop index ${s}.run_gated;
create index run_gated on ${s}.run (task_id, state, due_ms) where gate > 0;

alter table ${s}.run add column limit_key text, add column shard int[];
create index run_lane on ${s}.run (task_id, limit_key, due_ms) where state = 0 and limit_key is not null;

alter table ${s}.task add column routed boolean not null generated always as (
  definition ? 'route' or definition ? 'labels' or definition->'limit'->>'perWorker' is not null) stored;
alter table ${s}.task add column lanes boolean not null generated always as (
  definition->'limit'->>'perKey' is not null or coalesce(definition->'rate'->>'byKey' = 'true', false)) stored;
alter table ${s}.gate add column cursor text not null default '';

-- What a rate has let through, in steps small enough to forget one by one.
create table ${s}.admission (
  task_id int not null,
  key text not null,
  at_ms bigint not null,
  count int not null,
  primary key (task_id, key, at_ms)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index admission_at on ${s}.admission (task_id, at_ms);

-- Whose turn it was: the higher, the later a node was given a run of the task.
create table ${s}.addressee (
  task_id int not null references ${s}.task,
  node text not null,
  turn bigint not null,
  primary key (task_id, node)
) with (fillfactor = 70);

alter table ${s}.session add column draining boolean not null default false;
`;
