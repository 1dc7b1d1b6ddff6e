import type { Change } from "../base/change.ts";

/** The runs of a node that a drain waits for. */
export interface Holds {
  /** The number of runs that the node's process still has; null if no live process has the node's name. */
  held: number | null;
  /** At most `holdsShown` of these runs, the longest held first. */
  runs: { run: number; task: string; startedMs: number | null }[];
}

/** A node that an operator has drained. Drains apply to a node's name. */
export interface DrainedNode extends Holds {
  node: string;
  sinceMs: number;
  by: string;
  why: string;
}

export const holdsShown = 10;

/**
 * The part of the store's interface with which operators drain nodes. A drain applies to a name, not to a process: a process that starts
 * with a drained name claims no runs either, until an operator resumes the name.
 * States and events: docs/operate/stopping.md.
 */
export interface DrainStore {
  /**
   * Drains a node. Statements that begin after this promise has resolved claim no run for the node; a claim that was already in
   * progress may still return runs. Idempotent: draining a drained node changes nothing.
   * @returns the runs that the node still has, and whether this call changed something
   * @throws NODE_UNKNOWN if no process has this name or had it recently
   */
  drain(node: string, change: Change): Promise<Holds & { changed: boolean }>;
  /** Resumes a node. Idempotent: resuming a node that is not drained changes nothing. @throws NODE_UNKNOWN */
  resume(node: string, change: Change): Promise<{ changed: boolean }>;
  /** Lists the drained nodes, ordered by name. */
  list(): Promise<DrainedNode[]>;
}
