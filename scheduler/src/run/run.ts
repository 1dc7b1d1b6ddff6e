import { CarillonError } from "../base/errors.ts";

/**
 * The life of a run, as the store keeps it. `held`: waits for a slot under the task's overlap policy. `paused`: an enqueued run of a paused
 * task. `ready`: claimable once due. `claimed`: a worker has it. `undecided`: its worker was lost, and its task leaves the consequence to
 * an operator; the run does not start meanwhile. The others are ends; an ended run moves from the live table to history, except
 * `withdrawn`, the end of a planned slot that an edit or a pause took back before its time: that slot never came due, so nothing remains of
 * it.
 */
export const liveStates = ["held", "paused", "ready", "claimed", "undecided"] as const;
export type LiveState = (typeof liveStates)[number];
export const outcomes = ["succeeded", "failed", "cancelled", "skipped"] as const;
export type Outcome = (typeof outcomes)[number];
export type RunState = LiveState | Outcome | "withdrawn";

export const runUnknown = (runId: number): CarillonError =>
  new CarillonError("RUN_UNKNOWN", `there is no run ${runId}`, {
    hint: "It may have been dropped by retention, or have succeeded in a task that keeps a history of failures only. See `carillon runs list`.",
  });
