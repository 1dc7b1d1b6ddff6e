import type { Authority } from "../base/change.ts";
import type { MissedRange, PlannedSlot } from "./plan.ts";

export interface DuePlan {
  taskId: number;
  version: number;
  nextSlotMs: number;
}

/** A task that a process ignores, with the version that it could not read. */
export type SetAside = Pick<DuePlan, "taskId" | "version">;

export interface PlanWrite extends DuePlan {
  /** The new value of the plan's next slot. */
  newNextSlotMs: number | null;
  slots: PlannedSlot[];
  missed: MissedRange[];
  /** True if the task limits its concurrency, so that its runs begin as held. */
  gated: boolean;
}

export interface PlanStore {
  /** Plans whose next slot is at or before `untilMs`, earliest first. @param setAside plans to leave out, each in this version */
  due(untilMs: number, limit: number, setAside?: readonly SetAside[]): Promise<DuePlan[]>;
  /**
   * Accepts slots. For each task, compares and sets its next slot, and writes ledger rows, runs and ranges only where that succeeds. One
   * statement for thousands of tasks. Repeatable: a second try finds the next slot already moved.
   * @returns the tasks whose step was applied @throws FENCE_STALE when the authority is over
   */
  accept(authority: Authority, writes: PlanWrite[], nowMs: number): Promise<{ taken: Set<number>; accepted: number }>;
  /**
   * Admits, skips or ends the due runs that wait for a slot of concurrency, by each task's limits.
   * @returns when the next held run that must be judged is due
   */
  admitHeld(untilMs: number, nowMs: number): Promise<number | null>;
}
