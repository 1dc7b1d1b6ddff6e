import type { Authority } from "../base/change.ts";
import type { MissedRange, PlannedSlot } from "./plan.ts";

export interface DuePlan {
  taskId: number;
  version: number;
  nextSlotMs: number;
}

/** A task that a process ignores, in the version that it could not read. */
export type SetAside = Pick<DuePlan, "taskId" | "version">;

export interface PlanWrite extends DuePlan {
  /** The new value of the plan's next slot. */
  newNextSlotMs: number | null;
  slots: PlannedSlot[];
  missed: MissedRange[];
  /** The task limits its concurrency, so its runs start out held. */
  gated: boolean;
}

export interface PlanStore {
  /** Plans whose next slot is at or before `untilMs`, earliest first. @param setAside left out, each in this version */
  due(untilMs: number, limit: number, setAside?: readonly SetAside[]): Promise<DuePlan[]>;
  /**
   * Accepts slots: per task a compare-and-set of its next slot, and only where that succeeds ledger rows, runs and
   * ranges. One statement for thousands. Repeatable: a second try finds the next slot moved on.
   * @returns the tasks whose step was taken @throws FENCE_STALE when the authority is over
   */
  accept(authority: Authority, writes: PlanWrite[], nowMs: number): Promise<{ taken: Set<number>; accepted: number }>;
  /**
   * Judges the due runs that wait for a slot of concurrency, by each task's limits.
   * @returns when the next held run that must be judged is due
   */
  admitHeld(untilMs: number, nowMs: number): Promise<number | null>;
}
