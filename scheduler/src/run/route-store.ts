import type { TaskDefinition } from "../task/task.ts";
import type { LiveWorker } from "./routing.ts";

/** A run that is ready and whose task has a route, but for which no worker has been chosen yet. */
export interface UnaddressedRun {
  runId: number;
  taskId: number;
  key: string | null;
  shard: [index: number, total: number] | null;
  dueMs: number;
  /** The number of times that the run has been claimed. */
  attempt: number;
  /**
   * The release (version of the code) that the run must stay on, for a task that pins runs to a release: the release of the last
   * attempt's worker. A child, a continuation or a join of a pinned run has the release of that run.
   */
  release: string | null;
  /** True if a worker with that release is alive, or ended at or after `goneMs`. */
  releaseStands: boolean;
}

/**
 * The data by which the router chooses workers, read at one moment. A choice may be outdated when it is written, so the write has
 * conditions of its own.
 */
export interface RouteView {
  runs: UnaddressedRun[];
  /** True if there are more unaddressed runs than `runs` contains. */
  more: boolean;
  /** When the first run that is due after `untilMs` is due, in epoch ms; null if there is none. */
  nextDueMs: number | null;
  /** `canRun`: the ids of those of `tasks` that the worker can run; null: all of them. */
  workers: (Omit<LiveWorker, "ofTask"> & { groups: string[]; canRun: number[] | null })[];
  /** The tasks of `runs`. */
  tasks: {
    taskId: number;
    definition: TaskDefinition;
    turns: Record<string, number>;
    /**
     * By session id, the number of the task's runs that the session has claimed or that are addressed to it; empty unless the
     * task has a limit per worker or the route `shards`.
     */
    held: Record<string, number>;
  }[];
}

export interface AddressWrite {
  runId: number;
  taskId: number;
  sessionId: number;
  node: string;
  /**
   * The turn to store for the chosen node. It is above every turn of the task in the view; each further write for the task has a
   * higher turn.
   */
  turn: number;
}

/** Runs that are addressed to a certain worker. Such a run is either claimed by that worker or withdrawn from it, never both. */
export interface RouteStore {
  /**
   * Returns ready runs that are addressed to no worker and due by `untilMs`, and the workers that could run them.
   * @param goneMs a release counts as gone if its last worker ended before this time
   */
  view(untilMs: number, limit: number, exceptTaskIds: number[], goneMs: number): Promise<RouteView>;
  /**
   * Addresses each run to its session, if the run is still ready and unaddressed and the session is alive and not draining. Never gives a
   * worker more runs of a task than the task's limit per worker. Can be repeated.
   * @returns the runs that were addressed, and the tasks for which another router has chosen since the view; for these tasks nothing was
   * written, and the caller must read the view again
   */
  address(writes: AddressWrite[], nowMs: number): Promise<{ addressed: Set<number>; overtaken: Set<number> }>;
  /**
   * Splits a run into `total` parts, of which the run itself becomes the first. Can be repeated, because a part is not split again.
   * @param addressees for a broadcast, the worker of each part; null: workers are chosen later
   */
  split(runId: number, total: number, addressees: { sessionId: number; node: string }[] | null): Promise<void>;
  /**
   * Ends a run that is still ready and unaddressed, because no worker is left that may run it. Its outcome is cancelled if it had not
   * started, else failed. Can be repeated.
   * @param release the release that the run is pinned to; null if the run is a part of a broadcast whose worker has left
   */
  giveUp(runId: number, release: string | null, nowMs: number): Promise<void>;
  /**
   * Withdraws runs that were addressed to a worker but not claimed: those of sessions that have ended or are draining, and some of those
   * that were due before `lateMs` and that another worker could run.
   * @param lateMs null: withdraw no late runs
   * @returns the number of withdrawn runs
   */
  withdraw(lateMs: number | null): Promise<number>;
  /** Returns the ids of the sessions to which runs can be addressed. */
  sessions(): Promise<number[]>;
  /**
   * Withdraws unclaimed parts of split runs, so that they are distributed again after workers were added.
   * @returns the number of parts
   */
  spread(): Promise<number>;
  /** Marks a session as taking no more runs. Unclaimed runs that are addressed to it are given to other workers. */
  drain(sessionId: number): Promise<void>;
}
