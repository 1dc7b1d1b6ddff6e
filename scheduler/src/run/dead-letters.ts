import type { Reason } from "./error-fingerprint.ts";
import type { OperationFilter } from "./operations.ts";

/** A dead letter is a run that failed in its last try, and that has not been redriven or dismissed yet. See docs/operations.md. */
export interface DeadLetter {
  runId: number;
  task: string;
  endedMs: number;
  fingerprint: string;
  state: "open" | "redriven" | "dismissed";
  /** The run that redrives it. */
  redrivenBy: number | null;
}

/** Open letters that failed for the same reason. */
export interface DeadGroup {
  fingerprint: string;
  /** null: the history of the newest letter is deleted, and the reason of its failure with it. */
  reason: Reason | null;
  letters: number;
  /** The first tasks by name, at most 100, of the `taskCount` tasks that failed this way. */
  tasks: string[];
  taskCount: number;
  firstMs: number;
  lastMs: number;
  lastRunId: number;
}

/** The largest groups, at most 1,000, and the total number of groups and letters. */
export interface DeadGroups {
  groups: DeadGroup[];
  total: { groups: number; letters: number };
}

export interface DeadLetterStore {
  /** Exact counts of open letters, the largest group first. */
  groups(filter: OperationFilter): Promise<DeadGroups>;
  /** Open letters, newest first. */
  letters(filter: OperationFilter, limit: number): Promise<DeadLetter[]>;
  /** The links of a run to dead letters: its own letter, and the run that it redrives. */
  linksOf(runId: number): Promise<{ letter: DeadLetter | null; redrives: number | null }>;
}
