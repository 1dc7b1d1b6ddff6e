import { CarillonError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { type Outcome, runUnknown } from "./run.ts";

/** How a run ended. */
export interface RunEnd {
  runId: number;
  /** null if no run with this id is known. */
  outcome: Outcome | null;
  /** null if no row of the run was stored. */
  task: string | null;
  result: Json;
  /** An object with `code` and `message`. */
  error: Json;
  /** False if no row of the run was stored, as for a success of a task with `history: "failures"`. */
  kept: boolean;
}

export interface EndStore {
  /** Requests a signal for the end of each of these runs. Can be repeated. The store deletes the request after an hour. */
  awaitEnds(runIds: number[], nowMs: number): Promise<void>;
  /**
   * Returns the ends of those runs that have ended, and deletes the requests for their signals. A run that the store does not know
   * is returned with the outcome null.
   * @param sinceMs the earliest time at which one of these runs may have ended
   */
  ends(runIds: number[], sinceMs: number): Promise<RunEnd[]>;
}

/** Returns the result of a successful run. @throws RUN_FAILED, RUN_CANCELLED, RUN_SKIPPED, RESULT_UNKEPT, RUN_UNKNOWN */
export function resultOf({ runId, outcome, task, result, error, kept }: RunEnd): Json {
  if (outcome === null) throw runUnknown(runId);
  if (outcome === "succeeded" && kept) return result;
  if (outcome === "succeeded")
    throw new CarillonError("RESULT_UNKEPT", `run ${runId} succeeded, and its task keeps no results`, {
      hint: 'Its task says history: "failures". Leave that out for a task whose results are waited for.',
    });
  const { message = "" } = (error ?? {}) as { message?: string };
  const what = { failed: "failed", cancelled: "was cancelled", skipped: "was skipped" }[outcome];
  const code = ({ failed: "RUN_FAILED", cancelled: "RUN_CANCELLED", skipped: "RUN_SKIPPED" } as const)[outcome];
  throw new CarillonError(code, `run ${runId} of task ${task} ${what}${message === "" ? "" : `: ${message}`}`, {
    cause: error,
    hint: `See \`carillon runs show ${runId}\`.`,
  });
}
