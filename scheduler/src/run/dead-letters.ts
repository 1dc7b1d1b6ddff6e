import type { Reason } from "./error-fingerprint.ts";
import type { OperationFilter } from "./operations.ts";

/**
 * A dead letter is a run that ended as failed, its last try included, and that nobody has redriven or dismissed yet.
 * See docs/operations.md.
 */
export interface DeadLetter {
  runId: number;
  task: string;
  endedMs: number;
  fingerprint: string;
  state: "open" | "redriven" | "dismissed";
  /** The run that was made of it. */
  redrivenBy: number | null;
}

/** Open letters that failed for one reason. */
export interface DeadGroup {
  fingerprint: string;
  /** null: the newest letter's history is gone, and with it what it failed of. */
  reason: Reason | null;
  letters: number;
  /** Of `taskCount` that failed so, the first by name: 100 at most. */
  tasks: string[];
  taskCount: number;
  firstMs: number;
  lastMs: number;
  lastRunId: number;
}

/** The largest groups, 1,000 at most, and how many there are in all. */
export interface DeadGroups {
  groups: DeadGroup[];
  total: { groups: number; letters: number };
}

export interface DeadLetterStore {
  /** Exact counts of open letters, the largest group first. */
  groups(filter: OperationFilter): Promise<DeadGroups>;
  /** Open letters, newest first. */
  letters(filter: OperationFilter, limit: number): Promise<DeadLetter[]>;
  /** What a run has to do with dead letters: the letter it is, and the run it redrives. */
  linksOf(runId: number): Promise<{ letter: DeadLetter | null; redrives: number | null }>;
}
