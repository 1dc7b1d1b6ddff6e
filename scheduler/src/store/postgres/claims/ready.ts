import { runState, takesRuns } from "../states.ts";
/** SQL: all priorities of tasks, the highest (9) first. */
export const prioritiesSql = "array[9,8,7,6,5,4,3,2,1,0]::smallint[]";

/**
 * SQL for the earliest due time of the runs that the groups' workers can claim: one index probe per group and priority, however many runs
 * wait.
 * @param groups the source of the groups, for FROM
 * @param id the column with the group's number
 * @param but a condition on runs
 */
export const earliestReadySql = (schema: string, groups: string, id: string, but = "true"): string => `
    select min(r.due_ms) as next from ${groups} cross join unnest(${prioritiesSql}) as p (priority)
    cross join lateral (
      select due_ms from ${schema}.run where state = ${runState.ready} and group_id = ${id} and priority = p.priority and ${but}
      order by due_ms limit 1) r`;

/** Part of a WITH RECURSIVE: selects the sessions' own groups that have ready runs, with one probe each, and a null at the end. */
export const directedSql = (schema: string): string => `
    directed as (
      (select group_id from ${schema}.run where state = ${runState.ready} and group_id < 0 order by group_id limit 1)
      union all
      select (select r.group_id from ${schema}.run r where r.state = ${runState.ready} and r.group_id > directed.group_id and r.group_id < 0
              order by r.group_id limit 1)
      from directed where directed.group_id is not null)`;

/**
 * Selects due runs that wait only for a worker, as (task_id, due_ms, since_ms): those with the earliest due times for each priority of a
 * group, of an addressee and, for routed runs without an addressee, of a task. `since_ms` is the time since which only a worker is missing.
 * A caller that needs a run's group reads it from the task, because a run with an addressee has the addressee's own group number. The
 * statement uses index probes, however many runs wait. It steps through tasks only for runs without an addressee, because runs that wait
 * for their limit per worker may come before all others.
 * @param before SQL for the time before which the runs are due
 * @param each the most runs per priority of a group or task
 * @param addressed the most runs per priority of an addressee
 */
export const waitingSql = (schema: string, before: string, each: number, addressed = each): string => {
  const oldest = (group: string, most: number, ofTask = "") => `cross join lateral (
        select task_id, due_ms, coalesce(ready_ms, created_ms) as since_ms from ${schema}.run
        where state = ${runState.ready} and group_id = ${group} and priority = p.priority and due_ms < ${before} ${ofTask}
        order by due_ms limit ${most}) r`;
  const priorities = `cross join unnest(${prioritiesSql}) as p (priority)`;
  return `(
      with recursive ${directedSql(schema)},
      unaddressed as materialized (
        select p.priority from (select) as one ${priorities} ${oldest("0", 1)})
      select r.* from ${schema}.worker_group g ${priorities} ${oldest("g.id", each)}
      union all
      select r.* from directed d ${priorities} ${oldest("d.group_id", addressed)}
      union all
      select r.* from unaddressed p cross join (select id from ${schema}.task where routed) x ${oldest("0", each, "and task_id = x.id")})`;
};

/**
 * SQL condition: the ready runs of a task `t` wait for a worker. The ready runs of a task with a limit per worker wait for that limit
 * instead if a worker that could run them is alive.
 */
export const waitsForWorkerSql = (
  schema: string,
): string => `(t.definition->'limit'->>'perWorker' is null or not exists (
    select from ${schema}.session o join ${schema}.worker_group g on g.name = any (o.groups)
    where ${takesRuns} and coalesce(o.capacity, 1) > 0 and g.id = t.group_id
      and o.labels @> coalesce(t.definition->'labels', '{}')))`;

const unservedMs = 60_000;
/** The most tasks with live runs that are checked, lowest task number first. Each takes about 10 µs, and the result is only a warning. */
const unservedLooks = 500;

/**
 * SQL: selects, if their runs have been due for more than `unservedMs`: groups without a living worker, tasks for which no living worker of
 * their group has a handler, and tasks whose runs cannot be addressed to any worker. Living workers are read first, so that a group with a
 * worker costs no probe. The names of the tasks that workers handle are read only if runs are late and all workers of their group list such
 * names. $2 is the time.
 *
 * The leader runs this statement in its heartbeat, so the cost must not depend on the number of tasks. With a join with `task`, the planner
 * probed the runs of each task before it checked whether any group was late at all: a heartbeat took 4.5 s with 100,000 tasks. So the
 * statement steps only through the tasks that have live runs.
 */
export const unservedSql = (schema: string): string => `
    select array(
      with recursive alive as materialized (
        select groups, tasks from ${schema}.session where ${takesRuns} and coalesce(capacity, 1) > 0
      ), late as materialized (
        select g.id, g.name, exists (select from alive o where g.name = any (o.groups)) as served from ${schema}.worker_group g
        where not exists (select from alive o where o.tasks is null and g.name = any (o.groups))
          and exists (select from unnest(${prioritiesSql}) as p (priority) cross join lateral (
            select 1 from ${schema}.run where state = ${runState.ready} and group_id = g.id and priority = p.priority and due_ms < $2::bigint - ${unservedMs}
            order by due_ms limit 1) r)
      ), named as materialized (
        select distinct late.id, n.name from late join alive o on late.name = any (o.groups) cross join unnest(o.tasks) as n (name)
      ), seen (task_id, n) as (
        (select task_id, 1 from ${schema}.run where exists (select from late where served) order by task_id limit 1)
        union all
        select (select r.task_id from ${schema}.run r where r.task_id > seen.task_id order by r.task_id limit 1), n + 1
        from seen where seen.task_id is not null and n < ${unservedLooks}
      )
      select 'group ' || name from late where not served
      union
      select 'task ' || t.name from seen join ${schema}.task t on t.id = seen.task_id and t.deleted_ms is null and not t.routed
        join late on late.id = t.group_id
      where late.served and not exists (select from named n where n.id = late.id and n.name = coalesce(t.of_name, t.name))
        and exists (select from unnest(${prioritiesSql}) as p (priority) cross join lateral (
          select 1 from ${schema}.run r where r.task_id = t.id and r.state = ${runState.ready} and r.priority = p.priority and r.due_ms < $2::bigint - ${unservedMs}
          limit 1) r)
      union
      select 'task ' || t.name from unnest(${prioritiesSql}) as p (priority) cross join lateral (
        select task_id from ${schema}.run where state = ${runState.ready} and group_id = 0 and priority = p.priority and due_ms < $2::bigint - ${unservedMs}
        order by due_ms limit 10) r join ${schema}.task t on t.id = r.task_id
      where ${waitsForWorkerSql(schema)})`;

/** Returns the earliest of the times; null if all are null. */
export function earliest(times: (number | null)[]): number | null {
  const some = times.filter((ms) => ms !== null);
  return some.length === 0 ? null : Math.min(...some);
}
