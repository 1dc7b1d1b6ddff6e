import { CarillonError } from "../base/errors.ts";

/**
 * The states of a run in the store. `held`: waits for a slot under the task's overlap policy. `paused`: an enqueued run of a paused task.
 * `ready`: claimable once due. `claimed`: a worker has it. `undecided`: its worker was lost, and its task leaves the decision to an
 * operator; the run does not start meanwhile. The others are ends; an ended run moves from the live table to history. Exception:
 * `withdrawn` is the end of a planned slot that an edit or a pause took back before its time; that slot never came due, so no record of it
 * remains.
 */
export const liveStates = ["held", "paused", "ready", "claimed", "undecided"] as const;
export type LiveState = (typeof liveStates)[number];
export const outcomes = ["succeeded", "failed", "cancelled", "skipped"] as const;
export type Outcome = (typeof outcomes)[number];
export type RunState = LiveState | Outcome | "withdrawn";

/**
 * How a run was made. `child`: spawned by a run; `after`: follows one or more runs; `chain`: continues one run; `join`: follows all
 * children of one run.
 */
export const runSources = ["slot", "enqueue", "manual", "child", "after", "chain", "join"] as const;
export type RunSource = (typeof runSources)[number];

/** A key is unique only within its task, and the indexes of runs begin with the task. */
export const keyNeedsTask = (): CarillonError =>
  new CarillonError("OPTION_INVALID", "runs are listed by a key within one task only", {
    hint: "Add the task whose run has the key.",
    path: "key",
  });

export const runUnknown = (runId: number): CarillonError =>
  new CarillonError("RUN_UNKNOWN", `there is no run ${runId}`, {
    hint: "It may have been dropped by retention, or have succeeded in a task that keeps a history of failures only. See `carillon runs list`.",
  });
