import type { Change } from "../base/change.ts";

/** The runs that a drain waits for. */
export interface Holds {
  /** The number of runs that the node's process still has; null: no process has the name now. */
  held: number | null;
  /** The runs that it has held longest, at most `holdsShown`. */
  runs: { run: number; task: string; startedMs: number | null }[];
}

/** A node that an operator has drained, by its name. */
export interface DrainedNode extends Holds {
  node: string;
  sinceMs: number;
  by: string;
  why: string;
}

export const holdsShown = 10;

/**
 * The part of the store's port with which operators drain nodes. A drain applies to a name, not to a process: a process that starts under a
 * drained name takes no runs either, until the name is resumed.
 * States and events: docs/stopping.md.
 */
export interface DrainStore {
  /**
   * Drains a node. Once this has resolved, no statement that begins later claims a run for the node; a claim that was under way may still
   * return some. Repeatable: draining a drained node changes nothing.
   * @throws NODE_UNKNOWN when no process of this name is known
   */
  drain(node: string, change: Change): Promise<Holds & { changed: boolean }>;
  /** Resumes a node. Repeatable: resuming a node that is not drained changes nothing. @throws NODE_UNKNOWN */
  resume(node: string, change: Change): Promise<{ changed: boolean }>;
  /** The drained nodes, ordered by name. */
  list(): Promise<DrainedNode[]>;
}
