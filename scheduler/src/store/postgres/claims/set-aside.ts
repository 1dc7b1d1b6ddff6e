import type { SqlClient } from "../../../base/change.ts";
import { isCarillonError } from "../../../base/errors.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { astraySql, rehangAstray } from "../rehang.ts";
import { runState } from "../states.ts";
import { settleGates } from "./gates.ts";
import { withdraw } from "./withdraw.ts";

/**
 * Whatever makes a run, or gives one back, has the task as the statement's snapshot has it: it sets the run aside when the
 * task is paused, and hangs it where the task's group, overlap policy and limits want it. One that read the task before a
 * change committed, and is seen only after the change looked for such runs, leaves a run for which nobody would ever come;
 * the caller's own transaction may take minutes for that. A lock of the task would be for every enqueue. So a resume and an
 * edit look once more when they have committed, and of those that set a run aside enqueues, claims and tries look once when
 * theirs has: one of the two comes after both. The janitor looks at what changed lately, for what other transactions made
 * (callers' own, operations, what comes after a run, a lost worker's; what an edit did not see), and for who failed or died in
 * between.
 */

/** The runs of tasks that are going: to be claimed, or to wait for a place, as each task is now. In the caller's transaction. */
export async function takeUp(client: SqlClient, s: string, taskIds: number[], nowMs: number): Promise<number> {
  const astray = await rehangAstray(client, s, taskIds);
  const { rows } = await client.query(
    `update ${s}.run r set state = case when r.gate > 0 then ${runState.held} else ${runState.ready} end
     from ${s}.plan p where r.task_id = any($1) and r.state = ${runState.paused} and p.task_id = r.task_id and not p.paused returning 1`,
    [taskIds],
  );
  await settleGates(client, s, taskIds, nowMs, false);
  await client.query(
    `select ${notifySql(s, "case when t.routed then 'direct ' else 'ready ' end || $2::bigint")} from ${s}.task t where t.id = any($1)`,
    [taskIds, Math.round(nowMs)],
  );
  return astray + rows.length;
}

/** Of which tasks: those of which the caller set runs aside, the one that it changed, or all that were changed lately. */
export type Left = { setAside: readonly number[] } | { changed: number } | { changedSinceMs: number };

/** Asks for the tasks that have runs set aside though they are not paused, or not there, or hung where the task was before an edit. */
export function leftQuery(s: string, which: Left): { name: string; text: string; values: unknown[] } {
  const first = (like: string) => `(select from ${s}.run r where r.task_id = t.id and ${like} limit 1)`;
  const aside = first(`r.state = ${runState.paused}`);
  // What is astray is found by a look at all runs of the task, in the order of an index, for the planner believes in many. A
  // task that was never edited has none: a million new runs of it are not read.
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

/** @returns how many of their runs it took up */
export async function takeUpLeft(database: Database, which: Left, nowMs: number): Promise<number> {
  const s = database.schema;
  const { name, text, values } = leftQuery(s, which);
  const left = await database.query<{ id: number }>(name, text, values);
  let taken = 0;
  // Each by itself: somebody may keep one task's places for minutes.
  for (const { id } of left) taken += await database.transaction((client) => takeUpOne(client, s, id, nowMs));
  return taken;
}

async function takeUpOne(client: SqlClient, s: string, taskId: number, nowMs: number): Promise<number> {
  // As whoever edits, pauses or resumes: before the runs, and it may have changed since it was found.
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

/** After a change of the task, whose commit stands whatever becomes of this: what it cannot look at now, the leader finds. */
export async function lookAgain(database: Database, taskId: number, nowMs: number): Promise<void> {
  try {
    await takeUpLeft(database, { changed: taskId }, nowMs);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
  }
}
