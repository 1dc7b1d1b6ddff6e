import type { Change, SqlClient } from "../../../base/change.ts";
import { ruledIn } from "../../../schedule/slot-rules.ts";
import type { IsWanted } from "../../../task/task-store.ts";
import { auditedTask } from "../access/audit.ts";
import { lookAgain, takeUp } from "../claims/set-aside.ts";
import { notifySql } from "../cluster/signals.ts";
import { queryIn } from "../query.ts";
import { accountPaused, planAnew } from "./plan-anew.ts";
import { lockTask, type Tasks, unknownTask } from "./read.ts";
import type { TaskRow } from "./task-rows.ts";

const endsAtOnce = 100;

export async function resume(tasks: Tasks, name: string, change: Change, isWanted?: IsWanted): Promise<void> {
  const { database, s } = tasks;
  const taskId = await database.transaction(async (client) => {
    const row = await lockTask(client, s, name);
    if (row.deleted_ms !== null) throw unknownTask(name);
    if (row.paused_ms === null || (isWanted && !(await isWanted(client)))) return row.id;
    await goOn(tasks, client, row, change);
    return row.id;
  });
  await lookAgain(database, taskId, change.nowMs);
}

/** Resumes tasks whose pause has ended. @returns their names, and the time at which the next pause ends, or null */
export async function endPauses(tasks: Tasks, change: Change): Promise<{ resumed: string[]; nextMs: number | null }> {
  const { database, s } = tasks;
  const rows = await database.query<{ id: number; name: string; untilMs: number }>(
    "task-pause-ends",
    `select id, name, paused_until_ms::float8 as "untilMs" from ${s}.task
     where paused_until_ms is not null and paused_ms is not null and deleted_ms is null order by paused_until_ms limit ${endsAtOnce}`,
  );
  const over = rows.filter(({ untilMs }) => untilMs <= change.nowMs);
  for (const { id, name } of over) {
    await database.transaction(async (client) => {
      const row = await lockTask(client, s, name);
      if (row.deleted_ms === null) await pauseEnded(tasks, client, row, change);
    });
    await lookAgain(database, id, change.nowMs);
  }
  // The rows are ordered by the end of the pause, so rows that were not read end later.
  const next = rows[over.length]?.untilMs ?? (over.length === endsAtOnce ? change.nowMs : null);
  return { resumed: over.map(({ name }) => name), nextMs: next };
}

/**
 * Resumes the task in the caller's transaction if its pause has ended. Called before anything else is done with the task.
 * @returns the task's row afterwards
 */
export async function pauseEnded(tasks: Tasks, client: SqlClient, row: TaskRow, change: Change): Promise<TaskRow> {
  if (row.paused_ms === null || row.paused_until_ms === null || row.paused_until_ms > change.nowMs) return row;
  await goOn(tasks, client, row, { author: row.paused_by ?? "", reason: "its pause is over", nowMs: change.nowMs });
  return lockTask(client, tasks.s, row.name);
}

/** Resumes a task as of the end of its pause, if it had one that has passed. Slots since then are planned, however late they are. */
async function goOn(tasks: Tasks, client: SqlClient, row: TaskRow, change: Change): Promise<void> {
  const { s, calendars, zones } = tasks;
  const { nowMs } = change;
  const sinceMs = row.paused_until_ms === null ? nowMs : Math.min(nowMs, row.paused_until_ms - 1);
  await auditedTask(client, s, "resume", row, change);
  const calendar = await calendars.in(client, row.definition, false);
  const zonesVersion = await zones.refresh(queryIn(client));
  const was = ruledIn(row.definition, calendar, zones.at(row.zones_version));
  await accountPaused(tasks, client, { row, ruled: was, now: Math.round(sinceMs) });
  await client.query(
    `update ${s}.task set paused_ms = null, paused_by = null, paused_why = null, paused_until_ms = null,
            paused_failures = null, resumed_ms = $2, changed_ms = $2 where id = $1`,
    [row.id, Math.round(nowMs)],
  );
  const is = ruledIn(row.definition, calendar, zones.at(zonesVersion));
  await planAnew(tasks, client, { row, was, is, zonesVersion, paused: false, nowMs: sinceMs });
  await takeUp(client, s, [row.id], nowMs);
  await client.query(`select ${notifySql(s, "'tasks'")}`);
}
