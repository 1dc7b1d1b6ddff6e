import type { Change } from "../base/change.ts";

/** What a drain waits for. */
export interface Holds {
  /** Runs that the node's process still has; null: no process has the name now. */
  held: number | null;
  /** Of these the ones that it has had for longest, `holdsShown` at most. */
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
 * The part of the store's port by which operators drain nodes. Drained is a name, and not a process: a process that starts under it
 * takes no runs either, until the name is resumed.
 * States and events: docs/deploying.md.
 */
export interface DrainStore {
  /**
   * No statement that begins after this has returned claims a run for the node; one that was under way may still bring some.
   * Repeatable: of a node that is drained already nothing changes.
   * @throws NODE_UNKNOWN when no process of this name is known
   */
  drain(node: string, change: Change): Promise<Holds & { changed: boolean }>;
  /** Repeatable: of a node that is not drained nothing changes. @throws NODE_UNKNOWN */
  resume(node: string, change: Change): Promise<{ changed: boolean }>;
  /** By name. */
  list(): Promise<DrainedNode[]>;
}
