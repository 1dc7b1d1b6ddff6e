import type { ClaimedRun, TurnRequest } from "../../../run/claim-store.ts";
import { runState, takesRuns } from "../states.ts";
import type { Claiming } from "./claim.ts";
import { unlimitedGroupSql, unlimitedRunSql } from "./group-limits.ts";
import { prioritiesSql } from "./ready.ts";
import { type PickedRun, toStart } from "./to-start.ts";

/** The most tasks that one turn reads. Each takes about 10 µs. */
const tasksPerTurn = 200;

/** A row of the turn. If no run was claimed, there is still one row, in which only `lastTaskId` is set. */
type TurnRow = Omit<PickedRun, "runId"> & { runId: number | null; lastTaskId: number };

export async function turn(
  { database, takeSql, limited }: Claiming,
  request: TurnRequest,
): Promise<{ runs: ClaimedRun[]; lastTaskId: number }> {
  const rows = await database.query<TurnRow>("claim-turn", turnSql(database.schema, takeSql), turnValues(request));
  const claimed = rows.flatMap(({ runId, ...run }) => (runId === null ? [] : [{ ...run, runId }]));
  const runs = await toStart(database, claimed, request.nowMs);
  // Each claim of a limited group shares its slots fairly between the tasks, so for these groups a turn is a normal claim.
  const { free: _, ...asked } = request;
  const more = await limited.claim(
    asked,
    limited.of(request.groupIds),
    Math.min(request.each, request.limit - runs.length),
  );
  return { runs: [...runs, ...more.runs], lastTaskId: rows[0]?.lastTaskId ?? 0 };
}

/*
 * Normal claims take runs in the order of their due times, so a backlog of one task's runs comes before all runs that came due later. A
 * *turn* is a claim that steps from task to task instead, with one probe of the index `run_task` each, and takes a few runs of each task
 * that has some: its cost depends on the number of tasks with live runs, not on how many runs they have.
 *
 * Priorities stay strict: a turn takes only priorities at which a run is due, and none below the highest priority among the runs that
 * already wait in the requesting worker. If a task has runs waiting in that worker at that priority, the turn takes only runs of higher
 * priorities from this task, because its other runs would not start sooner in the same worker.
 *
 * Runs addressed to the worker (groups below 0) are few, so a turn takes them together.
 */
const turnSql = (s: string, takeSql: string) => `
    with recursive alive as materialized (select 1 from ${s}.session where id = $1 and ${takesRuns}),
    seen (task_id, n) as (
      (select task_id, 1 from ${s}.run where task_id > $9 order by task_id limit 1)
      union all
      select (select r.task_id from ${s}.run r where r.task_id > seen.task_id order by r.task_id limit 1), n + 1
      from seen where seen.task_id is not null and n < ${tasksPerTurn}
    ),
    level as materialized (
      select priority from unnest(${prioritiesSql}) as p (priority) where priority >= $7 and exists (
        select from unnest($2::int[]) as g (group_id) cross join lateral (
          select 1 from ${s}.run where state = ${runState.ready} and group_id = g.group_id and priority = p.priority and due_ms <= $4
          order by due_ms limit 1) r)
    ),
    picked as materialized (
      select place from (
        select r.place, level.priority from seen join ${s}.task t on t.id = seen.task_id cross join level
          cross join lateral (
            select ctid as place from ${s}.run where task_id = seen.task_id and state = ${runState.ready} and priority = level.priority and due_ms <= $4
            order by due_ms limit $8 for update skip locked) r
        where t.group_id = any ($2) and ${unlimitedGroupSql(s, "t.group_id")} and not t.routed and t.id <> all ($3::int[])
          and not (level.priority = $7 and t.id = any ($10::int[]))
        union all
        select r.place, level.priority from unnest($2::int[]) as g (group_id) cross join level
          cross join lateral (
            select ctid as place from ${s}.run where state = ${runState.ready} and group_id = g.group_id and priority = level.priority and due_ms <= $4
            and task_id <> all ($3::int[]) and not (level.priority = $7 and task_id = any ($10::int[])) and ${unlimitedRunSql(s, "group_id", "task_id")} order by due_ms limit $8 for update skip locked) r
        where g.group_id < 0) r
      where exists (select from alive) order by priority desc limit $5
    ),
    taken as (${takeSql})
    select (select coalesce(max(task_id), 0) from seen where (select max(n) from seen where task_id is not null) = ${tasksPerTurn}) as "lastTaskId",
           taken.* from (select) as always left join taken on true`;

const turnValues = (request: TurnRequest) => [
  request.sessionId,
  request.groupIds,
  request.exceptTaskIds,
  Math.round(request.untilMs),
  request.limit,
  Math.round(request.nowMs),
  request.leastPriority,
  request.each,
  request.afterTaskId,
  request.waitingTaskIds,
];
