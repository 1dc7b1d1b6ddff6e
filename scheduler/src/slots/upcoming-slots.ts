/** When a task fires next, worked out from its record. */

import { plannedSchedule } from "../schedule/slot-rules.ts";
import type { TaskRecord } from "../task/task-record.ts";
import { type ComingTask, comingSlots, judgedSlot, pauseEnd } from "./coming-slots.ts";

export const scheduleOf = ({ definition, calendar, accountedMs, zones }: TaskRecord) =>
  plannedSchedule(definition, calendar, accountedMs, zones);

export const coming = (record: TaskRecord): ComingTask => ({
  definition: record.definition,
  schedule: scheduleOf(record),
  seed: record.taskId,
});

/** The next slots as they are planned; those that will be skipped too, since they are accounted for. */
export function plannedSlots(record: TaskRecord, afterMs: number, count: number): number[] {
  const schedule = scheduleOf(record);
  const slots: number[] = [];
  for (
    let slot = schedule.next(Math.max(afterMs, pauseEnd(record) - 1));
    slot !== null && slots.length < count;
    slot = schedule.next(slot)
  )
    slots.push(slot);
  return slots;
}

/** The next slot that its calendar and blackouts let run; what is planned already still counts, until its time. */
export function nextOf(record: TaskRecord, nowMs: number): number | null {
  const {
    definition: { schedule },
    paused,
    nextSlotMs,
  } = record;
  if (paused && paused.untilMs === null) return null;
  // Only the store knows when the last run ended, and with it a fixed delay's next slot.
  if (schedule.type === "every" && schedule.mode === "delay") return paused ? null : nextSlotMs;
  return comingSlots(coming(record), Math.max(nowMs, pauseEnd(record) - 1), 1)[0] ?? null;
}

/** When that slot runs: later by jitter, or at a blackout's end. */
export function nextDue(record: TaskRecord, nowMs: number): number | null {
  const slotMs = nextOf(record, nowMs);
  return slotMs === null ? null : judgedSlot(coming(record), slotMs).dueMs;
}
