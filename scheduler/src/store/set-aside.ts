import type { SqlClient } from "../store.ts";
import type { Database } from "./database.ts";
import { settleGates } from "./gates.ts";
import { astraySql, rehangAstray } from "./rehang.ts";
import { notifySql } from "./signals.ts";
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

/** The runs of a task that is going: to be claimed, or to wait for a place. In the caller's transaction. */
export async function takeUp(client: SqlClient, s: string, taskIds: number[], nowMs: number): Promise<number> {
  const { rows } = await client.query(
    `update ${s}.run r set state = case when r.gate > 0 then 0 else 2 end
     from ${s}.plan p where r.task_id = any($1) and r.state = 1 and p.task_id = r.task_id and not p.paused returning 1`,
    [taskIds],
  );
  await settleGates(client, s, taskIds, nowMs, false);
  await client.query(`select ${notifySql(s, `'ready ${Math.round(nowMs)}'`)}`);
  return rows.length;
}

/** Of which tasks: those of which the caller set runs aside, those that it changed, or all that were changed lately. */
export type Left = { setAside: readonly number[] } | { changed: readonly number[] } | { changedSinceMs: number };

/** @returns how many runs were set aside for a task that is not paused, or not there, or hung where the task was before an edit */
export async function takeUpLeft(database: Database, which: Left, nowMs: number): Promise<number> {
  const s = database.schema;
  const aside = "r.state = 1";
  // Goes through all runs of a task that has none like that.
  const any = `(${aside} or r.state in (0, 2) and t.deleted_ms is not null or ${astraySql})`;
  const [name, where, value, like] =
    "setAside" in which
      ? (["task-left-aside", "t.id = any($1)", [...which.setAside], aside] as const)
      : "changed" in which
        ? (["task-left", "t.id = any($1)", [...which.changed], any] as const)
        : (["task-left-lately", "t.changed_ms >= $1", Math.round(which.changedSinceMs), any] as const);
  const left = await database.query<{ id: number }>(
    name,
    `select t.id from ${s}.task t cross join lateral (select from ${s}.run r where r.task_id = t.id and ${like} limit 1) r
     where ${where} and (t.paused_ms is null or t.deleted_ms is not null)`,
    [value],
  );
  if (left.length === 0) return 0;
  return database.transaction(async (client) => {
    // As whoever edits, pauses or resumes: before the runs, and it may have changed since it was found.
    const { rows } = await client.query(
      `select t.id, t.deleted_ms is not null as removed from ${s}.task t join ${s}.plan p on p.task_id = t.id
       where t.id = any($1) and (t.paused_ms is null or t.deleted_ms is not null) order by t.id for update of t, p`,
      [left.map(({ id }) => id)],
    );
    const going = rows.filter(({ removed }) => !removed).map(({ id }) => id as number);
    for (const { id } of rows.filter(({ removed }) => removed))
      await withdraw(client, s, id as number, Math.round(nowMs), "removed");
    const removed = rows.length - going.length;
    if (going.length === 0) return removed;
    const astray = await rehangAstray(client, s, going);
    return astray + (await takeUp(client, s, going, nowMs)) + removed;
  });
}
