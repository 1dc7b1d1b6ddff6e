import type { Change, SqlClient } from "../../../base/change.ts";
import type { Calendar } from "../../../schedule/calendar.ts";
import { ruledIn } from "../../../schedule/slot-rules.ts";
import { codeOf } from "../../../task/release.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import type { TaskRecord } from "../../../task/task-record.ts";
import { auditedEdit } from "../access/audit.ts";
import { settleGates } from "../claims/gates.ts";
import { withdraw } from "../claims/withdraw.ts";
import { notifySql } from "../cluster/signals.ts";
import { queryIn } from "../query.ts";
import { rehang } from "../rehang.ts";
import { markApplied } from "./applied.ts";
import { gateOf } from "./new-tasks.ts";
import { accountMissed, accountPaused, accountPutBack, planAnew } from "./plan-anew.ts";
import { lockTask, type Tasks } from "./read.ts";
import { pauseEnded } from "./resume.ts";
import { asRecord, type TaskRow, withRules } from "./task-rows.ts";
import { saveUpstream } from "./upstream.ts";

interface Edit {
  /** The task's present row, which this transaction has locked. */
  row: TaskRow;
  definition: TaskDefinition;
  /** The definition as text. Two definitions are compared by their texts. */
  text: string;
  groupId: number;
  calendar: Calendar | undefined;
  /** The previous version of the task's calendar, if the calendar has changed. */
  former?: Calendar | undefined;
  /** Set after cluster time went back: future slots that are only part of a recorded range are then planned. */
  rangesAhead?: "planned";
  change: Change;
}

/** Stores a new version of a task and plans it again, in the caller's transaction. @returns its record, with its calendar and zones */
export async function edit(
  tasks: Tasks,
  client: SqlClient,
  { row: locked, definition, text, groupId, calendar, former, rangesAhead, change }: Edit,
): Promise<TaskRecord> {
  const { s } = tasks;
  const now = Math.round(change.nowMs);
  const row = await pauseEnded(tasks, client, locked, change);
  const { gate, limit } = gateOf(definition);
  const there = row.version > 0 && row.deleted_ms === null;
  const before = there ? (former ?? (await tasks.calendars.in(client, row.definition, false))) : undefined;
  const zonesVersion = await tasks.zones.refresh(queryIn(client));
  await withdraw(client, s, row.id, now, "edited");
  const was = ruledIn(row.definition, before, tasks.zones.at(row.zones_version));
  const is = ruledIn(definition, calendar, tasks.zones.at(zonesVersion));
  await accountMissed(tasks, client, { row, ruled: was, now, reason: "edited before it could be planned" });
  await accountPaused(tasks, client, { row, ruled: was, now });
  if (there) await accountPutBack(tasks, client, { row, before: was, after: is, now });
  const { rows: updated } = await client.query(
    `update ${s}.task set version = ${s}.next_version($2), group_id = $3, definition = $4, definition_text = $5, gate = $6, gate_limit = $7,
            changed_ms = $8, deleted_ms = null, paused_ms = case when deleted_ms is null then paused_ms end,
            paused_until_ms = case when deleted_ms is null then paused_until_ms end, code = $9, code_version = ${s}.next_version($2)
     where id = $1 returning version`,
    [row.id, row.version, groupId, JSON.stringify(definition), text, gate, limit, now, codeOf(definition)],
  );
  const version = updated[0]?.version as number;
  await client.query(
    `insert into ${s}.task_version (task_id, version, definition, author, reason, changed_ms) values ($1, $2, $3, $4, $5, $6)`,
    [row.id, version, JSON.stringify(definition), change.author, change.reason, now],
  );
  await markApplied(client, s, row.id, version, change);
  const paused = row.paused_ms !== null && row.deleted_ms === null;
  await client.query(`update ${s}.plan set version = $2, paused = $3 where task_id = $1`, [row.id, version, paused]);
  if (definition.after ?? row.definition.after) await saveUpstream(client, s, row.id, definition);
  if (row.version > 0) await rehang(client, s, row.id);
  if (gate > 0) await client.query(`insert into ${s}.gate (task_id) values ($1) on conflict do nothing`, [row.id]);
  const { nextSlotMs, accountedMs } = await planAnew(tasks, client, {
    row,
    was,
    is,
    zonesVersion,
    paused,
    nowMs: change.nowMs,
    ...(rangesAhead && { rangesAhead }),
  });
  await settleGates(client, s, [row.id], change.nowMs, false);
  await auditedEdit(client, s, row, { definition, text }, change);
  await client.query(`select ${notifySql(s, "'tasks'")}`);
  const record = asRecord({
    ...row,
    version,
    group_id: groupId,
    definition,
    changed_ms: now,
    next_slot_ms: nextSlotMs,
    accounted_ms: accountedMs,
    zones_version: zonesVersion,
    bundle: change.bundle ?? row.bundle,
    deleted_ms: null,
    paused_ms: paused ? row.paused_ms : null,
    paused_until_ms: paused ? row.paused_until_ms : null,
  });
  return withRules(record, calendar, tasks.zones.of(definition, calendar, zonesVersion));
}

/**
 * Plans a task again that did not change itself, for example after a change of its calendar.
 * @param former the calendar before the change
 */
export async function replan(
  tasks: Tasks,
  client: SqlClient,
  { name, former, change }: { name: string; former: Calendar | undefined; change: Change },
): Promise<void> {
  const row = await lockTask(client, tasks.s, name);
  const { definition, definition_text: text, group_id: groupId } = row;
  const calendar = await tasks.calendars.in(client, definition, false);
  await edit(tasks, client, { row, definition, text, groupId, calendar, former, change });
}
