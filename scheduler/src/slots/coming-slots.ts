/** Predicts the next slots of a task with the same calculation as the planner. */
import { dueOf, type Judgement, type Schedule } from "../schedule/schedule.ts";
import { endOfTime } from "../schedule/zone.ts";
import type { TaskDefinition } from "../task/task.ts";

export interface ComingTask {
  definition: Pick<TaskDefinition, "schedule">;
  /** The schedule by which the task is planned, with its calendar and blackouts applied. */
  schedule: Schedule;
  /** The seed of the jitter, which is the task's id; null if the id is not known yet, so that jitter is left out. */
  seed: number | null;
}

/** Returns the time at which a paused task's slots begin to run again; 0 if the task is not paused, or its pause has no end. */
export const pauseEnd = ({ paused }: { paused?: { untilMs: number | null } | null | undefined }): number =>
  paused?.untilMs ?? 0;

/** The maximum number of skipped slots that the search passes over. Slots that share one judgement count as one. */
const lookedPast = 2_000;

/** Returns when a slot is due, and how the calendar and blackouts change that time. */
export function judgedSlot({ definition, schedule, seed }: ComingTask, slotMs: number): Judgement {
  const dueMs = seed === null ? slotMs : dueOf(definition.schedule, seed, slotMs);
  return schedule.judge?.(slotMs, dueMs) ?? { dueMs };
}

/**
 * Returns at most `count` of the next slots that will run; fewer if the search passes over `lookedPast` skipped slots. A fixed delay has at
 * most one, because later slots depend on its runs.
 */
export function comingSlots(task: ComingTask, afterMs: number, count: number): number[] {
  const { definition, schedule } = task;
  const most =
    definition.schedule.type === "every" && definition.schedule.mode === "delay" ? Math.min(count, 1) : count;
  const slots: number[] = [];
  let passed = 0;
  let slot = most > 0 ? schedule.next(afterMs) : null;
  while (slot !== null && passed < lookedPast) {
    const { skipped, untilMs = slot } = judgedSlot(task, slot);
    if (skipped === undefined) slots.push(slot);
    else passed++;
    slot = slots.length < most && untilMs < endOfTime ? schedule.next(Math.max(slot, untilMs - 1)) : null;
  }
  return slots;
}
