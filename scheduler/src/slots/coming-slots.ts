/** What comes of a task, told beforehand as its planner will judge it. */
import { dueOf, type Judgement, type Schedule } from "../schedule/schedule.ts";
import { endOfTime } from "../schedule/zone.ts";
import type { TaskDefinition } from "../task/task.ts";

export interface ComingTask {
  definition: Pick<TaskDefinition, "schedule">;
  /** As it is planned: under its calendar and its blackouts. */
  schedule: Schedule;
  /** By which jitter is drawn: the task's number; null: not known yet. */
  seed: number | null;
}

/** The time from which a task's slots run, where its pause has an end; 0: it is not paused, or nobody knows until when. */
export const pauseEnd = ({ paused }: { paused?: { untilMs: number | null } | null | undefined }): number =>
  paused?.untilMs ?? 0;

/** Slots that will be skipped are looked past, up to this many; those that one judgement tells of together count as one. */
const lookedPast = 2_000;

/** When a slot is due, and what calendar and blackouts make of it. */
export function judgedSlot({ definition, schedule, seed }: ComingTask, slotMs: number): Judgement {
  const dueMs = seed === null ? slotMs : dueOf(definition.schedule, seed, slotMs);
  return schedule.judge?.(slotMs, dueMs) ?? { dueMs };
}

/** The next slots that will run; of a fixed delay one, since the rest depend on its runs. */
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
