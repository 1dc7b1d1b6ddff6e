import type { Calendar } from "../../../schedule/calendar.ts";
import type { ZonesInForce } from "../../../schedule/zone-rules.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import type { TaskRecord } from "../../../task/task-record.ts";

export interface TaskRow {
  id: number;
  name: string;
  version: number;
  group_id: number;
  definition: TaskDefinition;
  definition_text: string;
  paused_ms: number | null;
  paused_by: string | null;
  paused_why: string | null;
  paused_until_ms: number | null;
  deleted_ms: number | null;
  changed_ms: number;
  next_slot_ms: number | null;
  bundle: string | null;
  applied_version: number | null;
  accounted_ms: number[] | null;
  /** The version of the zone rules by which the task is planned. */
  zones_version: number;
}

/** A row of which no reader compares definitions as text; the text is as long as the definition. */
export type RecordRow = Omit<TaskRow, "definition_text">;

/** SQL: the columns of a task `t` and its plan `p`, as a RecordRow. */
export const recordFields = `t.id, t.name, t.version, t.group_id, t.definition, t.paused_ms, t.paused_by,
                  t.paused_why, t.paused_until_ms::float8 as paused_until_ms, t.deleted_ms, t.changed_ms, p.next_slot_ms, t.bundle, t.applied_version, t.accounted_ms::float8[] as accounted_ms, p.zones_version`;

/** SQL: the columns of a task `t` and its plan `p`, as a TaskRow. */
export const taskFields = `${recordFields}, t.definition_text`;

export const asRecord = (row: RecordRow): TaskRecord => ({
  taskId: Number(row.id),
  name: row.name,
  version: row.version,
  definition: row.definition,
  groupId: row.group_id,
  paused:
    row.paused_ms === null
      ? null
      : {
          atMs: Number(row.paused_ms),
          by: row.paused_by ?? "",
          why: row.paused_why ?? "",
          untilMs: row.paused_until_ms,
        },
  changedMs: Number(row.changed_ms),
  nextSlotMs: row.next_slot_ms === null ? null : Number(row.next_slot_ms),
  ...(row.bundle === null ? {} : { bundle: row.bundle }),
  ...(row.accounted_ms === null ? {} : { accountedMs: row.accounted_ms }),
});

/** Returns the record with the calendar and the zone rules by which the task is planned. */
export const withRules = (
  record: TaskRecord,
  calendar: Calendar | undefined,
  zones: { zones?: ZonesInForce },
): TaskRecord => (calendar === undefined ? { ...record, ...zones } : { ...record, calendar, ...zones });
