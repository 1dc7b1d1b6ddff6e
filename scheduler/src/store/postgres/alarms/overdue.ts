import { directedSql, prioritiesSql, waitingSql, waitsForWorkerSql } from "../claims/ready.ts";
import { runState } from "../states.ts";

/** The most runs that are read for each priority of a group, of an addressee, and of a task whose runs need an addressee. */
const readyMost = 100;
/** The most runs that are counted for a task whose runs wait for the task's own limit. */
const heldMost = 1_000;
/**
 * The most tasks that are read to find runs that wait for their task's own limit; the tasks with the lowest numbers are read. Each task
 * takes about 20 µs.
 */
const heldTasks = 1_000;
/**
 * The most tasks of a scope that are probed one by one, in addition to the runs and tasks that are read for all scopes, where more of those
 * wait than are read. The tasks with the lowest numbers are probed.
 */
const probedTasks = 5_000;

/** SQL: the limits of the task `t` that can hold its runs back, as text for a message. */
const ownLimits = `concat_ws(', ', t.gate_limit || ' at once', (t.definition->'limit'->>'perKey') || ' at once per key',
  (t.definition->'rate'->>'limit') || ' in ' || round((t.definition->'rate'->>'perMs')::numeric / 1000, 3)::float8 || ' s'
    || case when t.definition->'rate'->>'byKey' = 'true' then ' per key' else '' end)`;

/**
 * SQL: steps through the tasks whose runs wait for their task's own limit, with one index probe per task. If there are more than `heldTasks`
 * and a scope is given, it also probes the tasks of the scope.
 */
const heldSql = (s: string, before: string, scope: string | undefined) => {
  const first = (after: string) =>
    `(select r.task_id from ${s}.run r where r.state = ${runState.held} and r.gate > 0${after} order by r.task_id limit 1)`;
  const isCut = `exists (select from seen where n = ${heldTasks} and task_id is not null)`;
  const chosen = scope
    ? `select task_id from seen union
       (select t.id from ${s}.task t where ${isCut} and ${scope} order by t.id limit ${probedTasks})`
    : "select task_id from seen";
  return `(
    with recursive seen (task_id, n) as (
      select ${first("")}, 1
      union all
      select ${first(" and r.task_id > seen.task_id")}, n + 1 from seen where seen.task_id is not null and n < ${heldTasks})
    select t.id as task_id, x.due_ms, 'own' as cause, x.count from (${chosen}) chosen join ${s}.task t on t.id = chosen.task_id cross join lateral (
      select count(*), min(due_ms) as due_ms from (
        select due_ms from ${s}.run r where r.task_id = chosen.task_id and r.state = ${runState.held} and r.gate > 0
        and r.due_ms < ${before} and greatest(r.created_ms, t.changed_ms) < ${before} order by r.due_ms limit ${heldMost}) y) x
    where x.count > 0)`;
};

/** SQL: the groups of which more due runs wait, at one priority or for one session that serves the group, than are read. */
const cutGroupsSql = (s: string) => {
  const isCut = (group: string) => `exists (select from unnest(${prioritiesSql}) as p (priority) cross join lateral (
      select from ${s}.run r where r.state = ${runState.ready} and r.group_id = ${group} and r.priority = p.priority and r.due_ms < $1
      order by r.due_ms offset ${readyMost} limit 1) x)`;
  return `
    with recursive ${directedSql(s)}
    select g.id from ${s}.worker_group g where ${isCut("g.id")}
    union
    select g.id from directed d join ${s}.session o on o.id = -d.group_id join ${s}.worker_group g on g.name = any (o.groups)
    where ${isCut("d.group_id")}`;
};

/**
 * SQL: due runs as `waitingSql` selects them, and those of the tasks of the scope whose groups have more waiting runs than it reads. The runs
 * of a probed task are read by the probe alone, so that none is counted twice.
 */
const scopedSql = (s: string, scope: string) => `(
    with cut as materialized (${cutGroupsSql(s)}),
    chosen as materialized (
      select t.id from ${s}.task t where t.group_id in (select id from cut) and ${scope} order by t.id limit ${probedTasks}),
    probed as materialized (
      select id from chosen cross join lateral (
        select from ${s}.run where task_id = chosen.id and state = ${runState.ready} limit 1) r)
    select o.* from ${waitingSql(s, "$1", readyMost)} o where not exists (select from probed where probed.id = o.task_id)
    union all
    select r.* from probed cross join unnest(${prioritiesSql}) as p (priority) cross join lateral (
      select task_id, due_ms, coalesce(ready_ms, created_ms) as since_ms from ${s}.run
      where task_id = probed.id and state = ${runState.ready} and priority = p.priority and due_ms < $1
      order by due_ms limit ${readyMost}) r)`;

/**
 * SQL: selects the tasks that have runs due before $1 and waiting since before $1, with the cause: no free worker, the limit of their
 * group, the task's limit per worker, or the task's other limits. Runs that have or need an addressee are included. The statement reads the
 * index that claims use. Runs of an edited or resumed task count as waiting only since the edit or the resume.
 * @param utc returns SQL that formats a time as text
 * @param most the most tasks to return
 * @param which SQL: a condition on the cause `w.cause` and the task `t`
 * @param scope SQL: a condition on the task `t`. Its tasks are also found behind many runs and tasks that are not in the scope
 */
export const overdueSql = (
  s: string,
  utc: (ms: string) => string,
  most: number,
  which: string,
  scope?: string,
): string => `
  with waiting as (
    select o.task_id, o.due_ms, case
        when exists (select from ${s}.group_limit l where l.group_id = t.group_id and l.full_ms >= $1) then 'group'
        when not ${waitsForWorkerSql(s)} then 'per worker' else 'worker' end as cause, 1 as count
    from ${scope ? scopedSql(s, scope) : waitingSql(s, "$1", readyMost)} o
    join ${s}.task t on t.id = o.task_id where greatest(o.since_ms, t.changed_ms) < $1
    union all
    select * from ${heldSql(s, "$1", scope)} h)
  select t.name as subject, sum(w.count)::float8 as count, null::float8 as run,
         format('the oldest is due since %s, and waits for %s', ${utc("min(w.due_ms)")}, case w.cause
           when 'worker' then format('a worker of group %s: start one, or give the group''s workers more room', g.name)
           when 'group' then format('the limit of its group %s, %s at once: raise it, or give the group less to do', g.name, l.most)
           when 'per worker' then format('its task''s limit, %s at once per worker: raise it, or start more workers', t.definition->'limit'->>'perWorker')
           else format('its task''s own limit, %s: raise it, or enqueue less', ${ownLimits}) end) as text
  from waiting w join ${s}.task t on t.id = w.task_id join ${s}.worker_group g on g.id = t.group_id
    left join ${s}.group_limit l on l.group_id = g.id
  where ${which}${scope ? ` and ${scope}` : ""}
  group by t.id, g.name, l.most, w.cause order by min(w.due_ms) limit ${most}`;
