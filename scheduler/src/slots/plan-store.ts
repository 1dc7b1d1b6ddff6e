import type { Authority } from "../base/change.ts";
import type { MissedRange, PlannedSlot } from "./plan.ts";

export interface DuePlan {
  taskId: number;
  version: number;
  nextSlotMs: number;
}

/** A task that this process skips because it cannot read this version of the task's definition. */
export type SetAside = Pick<DuePlan, "taskId" | "version">;

export interface PlanWrite extends DuePlan {
  /** The value to which the plan's next slot is set. */
  newNextSlotMs: number | null;
  slots: PlannedSlot[];
  missed: MissedRange[];
  /** True if the task limits its concurrency, so that its runs are created in the state `held`. */
  gated: boolean;
}

export interface PlanStore {
  /**
   * Returns the plans whose next slot is at or before `untilMs`, earliest first.
   * @param setAside plans to leave out as long as their task has the given version
   */
  due(untilMs: number, limit: number, setAside?: readonly SetAside[]): Promise<DuePlan[]>;
  /**
   * Returns the time of the `n`-th next slot, of all plans whose next slot is at or before `untilMs`; null if there are fewer.
   * @param setAside plans to leave out, as in `due`
   */
  nth(untilMs: number, n: number, setAside?: readonly SetAside[]): Promise<number | null>;
  /**
   * Stores planned slots. For each task, compares the stored next slot with the expected one and sets the new one; only if that succeeds
   * does it write the slots' rows, their runs and the ranges of missed slots. One statement handles thousands of tasks. Can be repeated: a
   * second attempt finds that the next slot has already moved.
   * @returns the ids of the tasks whose write was applied
   * @throws FENCE_STALE if the leader's authority has ended
   */
  accept(authority: Authority, writes: PlanWrite[], nowMs: number): Promise<{ taken: Set<number>; accepted: number }>;
  /**
   * Decides, by each task's limits, which due runs that wait for a slot of concurrency become ready, are skipped or end.
   * @returns when the next waiting run that needs a decision is due
   */
  admitHeld(untilMs: number, nowMs: number): Promise<number | null>;
}
