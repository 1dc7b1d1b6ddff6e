import { CarillonError } from "../base/errors.ts";

/**
 * The states of a run in the store. `held`: waits for a slot of concurrency under the task's overlap policy. `paused`: enqueued
 * while its task is paused. `ready`: can be claimed once due. `claimed`: a worker has it. `undecided`: its worker was lost, and
 * an operator must decide whether it is retried. All others are outcomes; a run that has ended moves from the live table to the
 * history table. A slot in the state `withdrawn` leaves no record: an edit or a pause took it back before it was due.
 */
export const liveStates = ["held", "paused", "ready", "claimed", "undecided"] as const;
export type LiveState = (typeof liveStates)[number];
export const outcomes = ["succeeded", "failed", "cancelled", "skipped"] as const;
export type Outcome = (typeof outcomes)[number];
export type RunState = LiveState | Outcome | "withdrawn";

/**
 * How a run was created. `slot`: by a schedule; `enqueue`: by a program; `manual`: by hand; `child`: spawned by a run; `after`: follows
 * runs of other tasks; `chain`: continues one run; `join`: follows all children of one run.
 */
export const runSources = ["slot", "enqueue", "manual", "child", "after", "chain", "join"] as const;
export type RunSource = (typeof runSources)[number];

/**
 * Creates the error for a filter with a key but without a task. A key is unique only within its task, and the indexes begin with the task.
 */
export const keyNeedsTask = (): CarillonError =>
  new CarillonError("OPTION_INVALID", "runs are listed by a key within one task only", {
    hint: "Add the task whose run has the key.",
    path: "key",
  });

export const runUnknown = (runId: number): CarillonError =>
  new CarillonError("RUN_UNKNOWN", `there is no run ${runId}`, {
    hint: "It may have been dropped by retention, or have succeeded in a task that keeps a history of failures only. See `carillon runs list`.",
  });
