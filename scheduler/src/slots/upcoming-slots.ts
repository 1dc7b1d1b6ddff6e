/** Computes the next slots of a task from its record. */

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

/** Returns the next planned slots, including slots that will be skipped, because the planner records skipped slots too. */
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

/**
 * Returns the next slot that the task's calendar and blackouts permit; null if there is none or a pause has no end. A slot that has been
 * planned already counts until its time has passed.
 */
export function nextOf(record: TaskRecord, nowMs: number): number | null {
  const {
    definition: { schedule },
    paused,
    nextSlotMs,
  } = record;
  if (paused && paused.untilMs === null) return null;
  // The next slot of a fixed delay depends on the end of the last run, which only the store has recorded.
  if (schedule.type === "every" && schedule.mode === "delay") return paused ? null : nextSlotMs;
  return comingSlots(coming(record), Math.max(nowMs, pauseEnd(record) - 1), 1)[0] ?? null;
}

/**
 * Returns when the next slot runs, which may be later than its nominal time because of jitter or a blackout; null if there is no next slot.
 */
export function nextDue(record: TaskRecord, nowMs: number): number | null {
  const slotMs = nextOf(record, nowMs);
  return slotMs === null ? null : judgedSlot(coming(record), slotMs).dueMs;
}
