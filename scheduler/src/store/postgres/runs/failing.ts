import type { Change, SqlClient } from "../../../base/change.ts";
import { notifySql } from "../cluster/signals.ts";
import { type Query, queryIn, queryOf } from "../query.ts";
import { letterState, runOutcome } from "../states.ts";
import type { Tasks } from "../tasks/read.ts";
import { pause } from "../tasks/stop.ts";

/** How far back failures are read, in ms. Earlier failures were checked by the former leader, or the next failure causes a check. */
const lookedBackMs = 3_600_000;

/** SQL: signals to the leader those of the tasks $1 that have `pauseAfter` and are not paused. */
export const failingToldSql = (s: string) =>
  `select count(${notifySql(s, "'failing ' || id")}) from ${s}.task where id = any($1::int[]) and definition ? 'pauseAfter' and paused_ms is null`;

/** SQL: counts the runs of the task $1 that failed since its last success and its last resume, up to $2. */
const inRowSql = (s: string) => `
  select count(*)::int as failed from (
    select from ${s}.run_history h
    where h.task_id = $1 and h.outcome = ${runOutcome.failed} and h.ended_ms > coalesce((select resumed_ms from ${s}.task where id = $1), 0)
      and (h.ended_ms, h.id) > all (
        select ended_ms, id from ${s}.run_history where task_id = $1 and outcome = ${runOutcome.succeeded} order by ended_ms desc, id desc limit 1)
    order by h.ended_ms desc, h.id desc limit $2) x`;

/**
 * Pauses each of these tasks that has had as many failed runs in a row as its `pauseAfter` says. The transaction that pauses a task checks
 * the condition again.
 * @param taskIds null for all tasks with an open dead letter from the last hour
 * @returns the names of the paused tasks
 */
export async function pauseFailing(tasks: Tasks, taskIds: number[] | null, change: Change): Promise<string[]> {
  const { database, s } = tasks;
  const rows = await database.query<{ id: number; name: string; most: number }>(
    taskIds === null ? "task-failing-lately" : "task-failing",
    `select id, name, (definition->>'pauseAfter')::int as most from ${s}.task
     where definition ? 'pauseAfter' and paused_ms is null and deleted_ms is null and ${
       taskIds === null
         ? `id in (select task_id from ${s}.dead_letter where state = ${letterState.open} and ended_ms > $1)`
         : "id = any($1::int[])"
     } order by name`,
    [taskIds ?? Math.round(change.nowMs) - lookedBackMs],
  );
  const paused: string[] = [];
  for (const { id, name, most } of rows) {
    const isFailing = async (query: Query) => {
      const [row] = await query<{ failed: number }>("task-failing-in-row", inRowSql(s), [id, most]);
      return (row?.failed ?? 0) >= most;
    };
    if (!(await isFailing(queryOf(database)))) continue;
    // This stays false if another process or an operator has paused the task meanwhile, because `tasks.pause` then does not call the check.
    let isStill = false;
    const asked = async (client: SqlClient) => {
      isStill = await isFailing(queryIn(client));
      return isStill;
    };
    const reason = most === 1 ? "a run failed" : `${most} runs in a row failed`;
    await pause(tasks, name, { ...change, reason, failures: most }, asked);
    if (isStill) paused.push(name);
  }
  return paused;
}
