import type { Reason } from "./error-fingerprint.ts";
import type { Failure } from "./handling/failure-groups.ts";
import type { OperationFilter } from "./operations.ts";

/** A run whose last attempt failed and that has not been redriven (run again) or dismissed yet. See docs/tasks/operations.md. */
export interface DeadLetter {
  runId: number;
  task: string;
  endedMs: number;
  fingerprint: string;
  state: "open" | "redriven" | "dismissed";
  /** The id of the run that redrives this run; null if no run redrives it. */
  redrivenBy: number | null;
}

/** Open dead letters whose runs failed for the same reason. */
export interface DeadGroup {
  fingerprint: string;
  /** null if the history of the newest letter, which contains the reason, has been deleted. */
  reason: Reason | null;
  letters: number;
  /**
   * The names of the tasks with letters in this group, in alphabetical order, at most 100. `taskCount` is the number of all tasks
   * with letters in the group.
   */
  tasks: string[];
  taskCount: number;
  firstMs: number;
  lastMs: number;
  lastRunId: number;
}

/** The largest groups, at most 1,000, and the total numbers of groups and letters. */
export interface DeadGroups {
  groups: DeadGroup[];
  total: { groups: number; letters: number };
}

export interface DeadLetterStore {
  /** Returns groups with exact counts of open letters, the largest group first. */
  groups(filter: OperationFilter): Promise<DeadGroups>;
  /** Returns open letters, newest first. */
  letters(filter: OperationFilter, limit: number): Promise<DeadLetter[]>;
  /**
   * Returns failed runs, newest first, at most `limit`, also those whose letters were redriven or dismissed. Those in other namespaces are
   * left out (null: all namespaces). `allSinceMs`: the returned failures are complete from this time on. It is later than `sinceMs` if
   * there are more than `limit` failures, or very many tasks that failed.
   */
  failures(which: {
    taskId: number | null;
    namespaces: readonly string[] | null;
    sinceMs: number;
    limit: number;
  }): Promise<{ failures: Failure[]; allSinceMs: number }>;
  /** Returns the reasons of failed runs; runs that are no longer in the history are left out. */
  reasons(runIds: number[]): Promise<Map<number, Reason>>;
  /** Returns a run's own dead letter, and the id of the run that this run redrives; each is null if it does not exist. */
  linksOf(runId: number): Promise<{ letter: DeadLetter | null; redrives: number | null }>;
}
