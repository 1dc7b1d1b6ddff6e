import type { Change } from "../../../base/change.ts";
import type { IsWanted } from "../../../task/task-store.ts";
import { auditedTask } from "../access/audit.ts";
import { lookAgain, takeUp } from "../claims/set-aside.ts";
import { notifySql } from "../cluster/signals.ts";
import { accountPaused, planAnew } from "./plan-anew.ts";
import { lockTask, type Tasks, unknownTask } from "./read.ts";

export async function resume(tasks: Tasks, name: string, change: Change, isWanted?: IsWanted): Promise<void> {
  const { database, s, calendars } = tasks;
  const taskId = await database.transaction(async (client) => {
    const row = await lockTask(client, s, name);
    if (row.deleted_ms !== null) throw unknownTask(name);
    if (row.paused_ms === null || (isWanted && !(await isWanted(client)))) return row.id;
    await auditedTask(client, s, "resume", row, change);
    const calendar = await calendars.in(client, row.definition, false);
    await accountPaused(tasks, client, { row, calendar, now: Math.round(change.nowMs) });
    await client.query(
      `update ${s}.task set paused_ms = null, paused_by = null, paused_why = null, changed_ms = $2 where id = $1`,
      [row.id, Math.round(change.nowMs)],
    );
    await planAnew(tasks, client, { row, definition: row.definition, calendar, paused: false, nowMs: change.nowMs });
    await takeUp(client, s, [row.id], change.nowMs);
    await client.query(`select ${notifySql(s, "'tasks'")}`);
    return row.id;
  });
  await lookAgain(database, taskId, change.nowMs);
}
