import type { Change, SqlClient } from "../../../base/change.ts";
import { pause as wait } from "../../../base/clock.ts";
import { pauseInPast } from "../../../run/operations.ts";
import type { IsWanted, PauseChange, Paused, Removed } from "../../../task/task-store.ts";
import { auditedTask } from "../access/audit.ts";
import { type Withdrawal, type Withdrawn, withdraw } from "../claims/withdraw.ts";
import { notifySql } from "../cluster/signals.ts";
import { runRecall, runState } from "../states.ts";
import { markRemoved } from "./applied.ts";
import { accountMissed, accountPaused } from "./plan-anew.ts";
import { lockTask, ruledOf, stale, type Tasks, unknownTask } from "./read.ts";
import { pauseEnded } from "./resume.ts";

const recallAgainMs = 10;

/** Pauses a task. @param change `failures`: the number of failures in a row because of which the task is paused automatically */
export async function pause(
  tasks: Tasks,
  name: string,
  change: PauseChange & { failures?: number },
  isWanted?: IsWanted,
): Promise<Paused> {
  const { s } = tasks;
  const untilMs = change.untilMs ?? null;
  if (untilMs !== null && !(untilMs > change.nowMs)) throw pauseInPast(untilMs);
  const mark = (client: SqlClient, id: number) =>
    client.query(
      `update ${s}.task set paused_ms = coalesce(paused_ms, $2), paused_by = $3, paused_why = $4, paused_until_ms = $5,
              paused_failures = $6, changed_ms = $2
       where id = $1`,
      [
        id,
        Math.round(change.nowMs),
        change.author,
        change.reason,
        untilMs === null ? null : Math.round(untilMs),
        change.failures ?? null,
      ],
    );
  const { taskId, held, skipped, isUnwanted } = await stop(tasks, {
    name,
    how: "paused",
    change,
    mark,
    untilMs,
    expectedVersion: null,
    isWanted,
  });
  return { recalled: isUnwanted ? [] : await recallClaimed(tasks, taskId), held, skipped };
}

/**
 * Removes a task.
 * @param given `of`: throw TASK_UNKNOWN unless the task is a schedule of that task. `client`: the caller's own transaction; then claimed
 * runs are not recalled, because their rows would stay locked until that transaction ends
 */
export async function remove(
  tasks: Tasks,
  name: string,
  change: Change,
  {
    expectedVersion = null,
    of,
    client,
    isWanted,
  }: Partial<Pick<Stop, "expectedVersion" | "of" | "client" | "isWanted">> = {},
): Promise<Removed & { taskId: number }> {
  const { s } = tasks;
  const mark = (within: SqlClient, id: number) => markRemoved(within, s, id, change);
  const stopped = await stop(tasks, { name, how: "removed", change, mark, expectedVersion, of, client, isWanted });
  const { taskId, skipped, cancelled, isUnwanted } = stopped;
  const recalled = client || isUnwanted ? [] : await recallClaimed(tasks, taskId);
  return { taskId, recalled, ended: skipped + cancelled };
}

interface Stop {
  name: string;
  how: Extract<Withdrawal, "paused" | "removed">;
  change: Change;
  /** Writes to the task's row that it is paused or removed. */
  mark: (client: SqlClient, taskId: number) => Promise<unknown>;
  expectedVersion: number | null;
  isWanted?: IsWanted | undefined;
  /** If set, the task to be stopped must be a schedule of the task with this name. */
  of?: string | undefined;
  /** The caller's transaction, if this stop must be a part of it. */
  client?: SqlClient | undefined;
  /** For a pause, the time at which it ends automatically; null if it lasts until a resume. */
  untilMs?: number | null;
}

interface Stopped extends Withdrawn {
  taskId: number;
  /** Set if `isWanted` returned false, so that nothing was changed. */
  isUnwanted?: true;
}

/** The common part of `pause` and `remove`: stops the planning of the task's slots, and withdraws its planned runs. */
async function stop(
  tasks: Tasks,
  { name, how, change, mark, expectedVersion, isWanted, of, client: within, untilMs = null }: Stop,
): Promise<Stopped> {
  const { database, s } = tasks;
  return database.within(within, async (client) => {
    const locked = await lockTask(client, s, name);
    if (locked.deleted_ms !== null || (of !== undefined && locked.definition.of !== of)) throw unknownTask(name);
    const row = await pauseEnded(tasks, client, locked, change);
    if (expectedVersion !== null && expectedVersion !== row.version)
      throw await stale(tasks, name, expectedVersion, client);
    const unchanged = { taskId: row.id, held: 0, skipped: 0, cancelled: 0 };
    const isPaused = how === "paused" && row.paused_ms !== null;
    if (isPaused && row.paused_until_ms === untilMs) return unchanged;
    if (isWanted && !(await isWanted(client))) return { ...unchanged, isUnwanted: true };
    const now = Math.round(change.nowMs);
    const ruled = await ruledOf(tasks, client, row);
    if (isPaused) {
      // The task is paused already, so only the end of its pause changes.
      await accountPaused(tasks, client, { row, ruled, now });
      await mark(client, row.id);
      await auditedTask(client, s, "pause", row, change);
      await client.query(`select ${notifySql(s, "'tasks'")}`);
      return unchanged;
    }
    await accountMissed(tasks, client, { row, ruled, now, reason: `${how} before it could be planned` });
    await accountPaused(tasks, client, { row, ruled, now });
    await client.query(`update ${s}.plan set paused = true, next_slot_ms = null where task_id = $1`, [row.id]);
    const waiting = await withdraw(client, s, row.id, now, how);
    await mark(client, row.id);
    await auditedTask(client, s, how === "paused" ? "pause" : "remove", row, change);
    await client.query(`select ${notifySql(s, "'tasks'")}`);
    return { taskId: row.id, ...waiting };
  });
}

/**
 * Recalls the task's claimed runs. Skips rows that another transaction is writing, and repeats until every claimed run that has
 * not started is recalled.
 */
async function recallClaimed({ database, s }: Tasks, taskId: number): Promise<number[]> {
  const recalled = new Set<number>();
  for (;;) {
    const rows = await database.query<{ id: number }>(
      "task-recall",
      `update ${s}.run set recall = ${runRecall.withdraw}, recall_why = 'its task was stopped' where id = any(array(
         select id from ${s}.run where task_id = $1 and state = ${runState.claimed} and recall = ${runRecall.none} for update skip locked))
       returning id`,
      [taskId],
    );
    for (const { id } of rows) recalled.add(id);
    const open = await database.query<{ id: number; asked: boolean }>(
      "task-recall-open",
      `select id, recall > ${runRecall.none} as asked from ${s}.run where task_id = $1 and state = ${runState.claimed} and started_ms is null`,
      [taskId],
    );
    // This includes runs recalled earlier, by a cancellation or for a newer run, because they may still start until their worker answers.
    for (const { id, asked } of open) if (asked) recalled.add(id);
    if (open.every(({ asked }) => asked)) break;
    // Another transaction, for example a caller's own, is ending the run, and may stay open for some time.
    await wait(database.clock, recallAgainMs);
  }
  if (recalled.size > 0) await database.query("", `select ${notifySql(s, "'recall'")}`);
  return [...recalled];
}
