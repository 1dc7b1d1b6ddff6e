import type { SqlClient } from "../../../base/change.ts";
import { isCarillonError, isStoreAway } from "../../../base/errors.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { astraySql, rehangAstray } from "../rehang.ts";
import { runState } from "../states.ts";
import { settleGates } from "./gates.ts";
import { withdraw } from "./withdraw.ts";

/**
 * A statement that creates or releases a run sees the task as of its own snapshot: it gives the run the state `paused` if the task is
 * paused, and places the run by the task's group, overlap policy and limits. If the statement read the task before a change of the task was
 * committed, and commits only after the change has looked for such runs, the run would be in a wrong state for ever; a caller's own
 * transaction may stay open for minutes. A lock on the task would make every enqueue slower. So a resume and an edit look for such runs
 * again after their commit, and enqueues, claims and retries that gave a run the state `paused` look once after theirs: one of the two
 * comes after both commits. The janitor checks recently changed tasks, for runs created by other transactions (callers' own, operations,
 * runs that follow a run, runs of a lost worker, runs that an edit did not see), and for processes that failed or died in between.
 */

/** How long the leader's search waits for the locks of one task, in ms. */
const gateWaitMs = 2_000;

/**
 * Makes `paused` runs of active tasks claimable, or lets them wait for a slot, by the task's present state. Runs in the caller's
 * transaction. @returns the number of runs that it changed
 */
export async function takeUp(client: SqlClient, s: string, taskIds: number[], nowMs: number): Promise<number> {
  const astray = await rehangAstray(client, s, taskIds);
  const { rows } = await client.query(
    `update ${s}.run r set state = case when r.gate > 0 then ${runState.held} else ${runState.ready} end, ready_ms = $2
     from ${s}.plan p where r.task_id = any($1) and r.state = ${runState.paused} and p.task_id = r.task_id and not p.paused returning 1`,
    [taskIds, Math.round(nowMs)],
  );
  await settleGates(client, s, taskIds, nowMs, false);
  await client.query(
    `select ${notifySql(s, "case when t.routed then 'direct ' else 'ready ' end || $2::bigint")} from ${s}.task t where t.id = any($1)`,
    [taskIds, Math.round(nowMs)],
  );
  return astray + rows.length;
}

/**
 * The tasks to check: tasks of which the caller set runs to `paused`, the task that the caller changed, or all tasks changed since a time.
 */
export type Left = { setAside: readonly number[] } | { changed: number } | { changedSinceMs: number };

/**
 * Selects tasks that have runs in the state `paused` although the task is not paused, runs although the task is removed, or runs that are
 * placed by the task's state from before an edit. With `setAside`, only runs in the state `paused` are looked for.
 */
export function leftQuery(s: string, which: Left): { name: string; text: string; values: unknown[] } {
  const first = (like: string) => `(select from ${s}.run r where r.task_id = t.id and ${like} limit 1)`;
  const aside = first(`r.state = ${runState.paused}`);
  // The ORDER BY makes the planner read the task's runs by an index until it finds a misplaced one, because it expects many of them. A task
  // that was never edited has none, so the condition on the version saves reading a million new runs of such a task.
  const any = `(${aside} union all ${first(`r.state in (${runState.held}, ${runState.ready}) and t.deleted_ms is not null`)} union all
       ${first(`t.version > 1 and ${astraySql} order by r.state, r.priority desc, r.due_ms`)} limit 1)`;
  const [name, where, value, left] =
    "setAside" in which
      ? (["task-left-aside", "t.id = any($1)", [...which.setAside], aside] as const)
      : "changed" in which
        ? (["task-left", "t.id = $1", which.changed, any] as const)
        : (["task-left-lately", "t.changed_ms >= $1", Math.round(which.changedSinceMs), any] as const);
  const text = `select t.id from ${s}.task t cross join lateral ${left} r
     where ${where} and (t.paused_ms is null or t.deleted_ms is not null) order by t.id`;
  return { name, text, values: [value] };
}

/**
 * Corrects runs that a concurrent change of their task left in a wrong state.
 * @returns the number of corrected runs; the runs of a removed task count as one
 */
export async function takeUpLeft(database: Database, which: Left, nowMs: number): Promise<number> {
  const s = database.schema;
  const { name, text, values } = leftQuery(s, which);
  const left = await database.query<{ id: number }>(name, text, values);
  let taken = 0;
  const failures: unknown[] = [];
  // One transaction per task, because another transaction may hold a task's gate for minutes. If one task fails, the search goes on with
  // the others; the leader searches again later.
  for (const { id } of left)
    try {
      taken += await database.transaction(async (client) => {
        if ("changedSinceMs" in which) await client.query(`set local lock_timeout = ${gateWaitMs}`);
        return takeUpOne(client, s, id, nowMs);
      });
    } catch (error) {
      if (isStoreAway(error)) throw error;
      failures.push(error);
    }
  // Throws the first error other than STORE_CONFLICT, if there is one: a lock conflict passes by itself.
  if (failures.length > 0) throw failures.find((error) => !isCarillonError(error, "STORE_CONFLICT")) ?? failures[0];
  return taken;
}

async function takeUpOne(client: SqlClient, s: string, taskId: number, nowMs: number): Promise<number> {
  // Locks the task before its runs, as an edit, a pause and a resume do. The task may have changed since the query above found it.
  const { rows } = await client.query(
    `select t.deleted_ms is not null as removed from ${s}.task t join ${s}.plan p on p.task_id = t.id
     where t.id = $1 and (t.paused_ms is null or t.deleted_ms is not null) for update of t, p`,
    [taskId],
  );
  if (!rows[0]) return 0;
  if (!rows[0].removed) return takeUp(client, s, [taskId], nowMs);
  await withdraw(client, s, taskId, Math.round(nowMs), "removed");
  return 1;
}

/**
 * Looks for misplaced runs again after a change of the task. The change is committed, so an error of the store is not thrown: the leader
 * finds the remaining runs.
 */
export async function lookAgain(database: Database, taskId: number, nowMs: number): Promise<void> {
  try {
    await takeUpLeft(database, { changed: taskId }, nowMs);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
  }
}
