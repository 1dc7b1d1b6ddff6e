/** Computes from a task's record when the task fires next. */

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

/** The next slots as planned, including slots that will be skipped, because those are accounted for too. */
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

/** The next slot that the task's calendar and blackouts allow. A slot that is already planned counts until its time has passed. */
export function nextOf(record: TaskRecord, nowMs: number): number | null {
  const {
    definition: { schedule },
    paused,
    nextSlotMs,
  } = record;
  if (paused && paused.untilMs === null) return null;
  // The next slot of a fixed delay depends on the end of the last run, which only the store records.
  if (schedule.type === "every" && schedule.mode === "delay") return paused ? null : nextSlotMs;
  return comingSlots(coming(record), Math.max(nowMs, pauseEnd(record) - 1), 1)[0] ?? null;
}

/** The time at which the next slot runs: later than its nominal time by jitter, or at a blackout's end. */
export function nextDue(record: TaskRecord, nowMs: number): number | null {
  const slotMs = nextOf(record, nowMs);
  return slotMs === null ? null : judgedSlot(coming(record), slotMs).dueMs;
}
