import type { SqlClient } from "../../../base/change.ts";
import { isCarillonError } from "../../../base/errors.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { astraySql, rehangAstray } from "../rehang.ts";
import { runState } from "../states.ts";
import { settleGates } from "./gates.ts";
import { withdraw } from "./withdraw.ts";

/**
 * A statement that makes a run, or gives one back, sees the task as of its own snapshot: it sets the run aside if the task is paused, and
 * places the run according to the task's group, overlap policy and limits. If the statement read the task before a change was committed,
 * and its own transaction commits only after the change looked for such runs, it leaves a run that no later step would find; a caller's own
 * transaction may stay open for minutes. Locking the task would make every enqueue slower. So a resume and an edit look again after their
 * commit, and enqueues, claims and tries that set a run aside look once after theirs: one of the two looks comes after both commits. The
 * janitor looks at recent changes, for runs made by other transactions (callers' own, operations, runs that follow a run, runs of a lost
 * worker, runs that an edit did not see), and for processes that failed or died in between.
 */

/**
 * Makes runs that were set aside claimable if their task is active, or lets them wait for a slot, by the task's present state. In the
 * caller's transaction.
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
 * Which tasks to look at: the tasks of which the caller set runs aside, the task that it changed, or all tasks that were changed lately.
 */
export type Left = { setAside: readonly number[] } | { changed: number } | { changedSinceMs: number };

/**
 * Selects tasks that have runs which are set aside although the task is not paused, runs whose task is removed, or runs that are placed by
 * the task's state from before an edit.
 */
export function leftQuery(s: string, which: Left): { name: string; text: string; values: unknown[] } {
  const first = (like: string) => `(select from ${s}.run r where r.task_id = t.id and ${like} limit 1)`;
  const aside = first(`r.state = ${runState.paused}`);
  // Misplaced runs are found by reading all runs of the task in the order of an index, because the planner expects many. A task that was
  // never edited has none, so a million new runs of such a task are not read.
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

/** @returns how many runs were made claimable or held */
export async function takeUpLeft(database: Database, which: Left, nowMs: number): Promise<number> {
  const s = database.schema;
  const { name, text, values } = leftQuery(s, which);
  const left = await database.query<{ id: number }>(name, text, values);
  let taken = 0;
  // One transaction per task, because another transaction may hold a task's gate for minutes.
  for (const { id } of left) taken += await database.transaction((client) => takeUpOne(client, s, id, nowMs));
  return taken;
}

async function takeUpOne(client: SqlClient, s: string, taskId: number, nowMs: number): Promise<number> {
  // The task is locked before its runs, as in an edit, a pause or a resume; it may have changed since it was found.
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
 * Looks again after a change of the task. The change is committed, so an error here is only logged: the leader finds the runs that were
 * missed.
 */
export async function lookAgain(database: Database, taskId: number, nowMs: number): Promise<void> {
  try {
    await takeUpLeft(database, { changed: taskId }, nowMs);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
  }
}
