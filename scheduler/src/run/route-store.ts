import type { TaskDefinition } from "../task/task.ts";
import type { LiveWorker } from "./routing.ts";

/** A ready run of a routed task that has no addressee yet. */
export interface UnaddressedRun {
  runId: number;
  taskId: number;
  key: string | null;
  shard: [index: number, total: number] | null;
  dueMs: number;
  /** How many times the run has been claimed. */
  attempt: number;
  /**
   * For a task with `pin`: the release of the worker of the last try; for a child, a next link or a join of a pinned run, that run's
   * release.
   */
  release: string | null;
  /** True if a worker of that release is alive, or ended at or after `goneMs`. */
  releaseStands: boolean;
}

/**
 * The data from which the router chooses, all read at one moment. The choice may be out of date when it is written; the write's conditions
 * decide.
 */
export interface RouteView {
  runs: UnaddressedRun[];
  /** True if there are more runs than these. */
  more: boolean;
  /** When the next run past `untilMs` is due. */
  nextDueMs: number | null;
  /** `canRun`: the tasks of these runs that the worker can run; null: any. */
  workers: (Omit<LiveWorker, "ofTask"> & { groups: string[]; canRun: number[] | null })[];
  /** The tasks that these runs belong to. */
  tasks: {
    taskId: number;
    definition: TaskDefinition;
    turns: Record<string, number>;
    /** The number of the task's runs that each session has. */
    held: Record<string, number>;
  }[];
}

export interface AddressWrite {
  runId: number;
  taskId: number;
  sessionId: number;
  node: string;
  /** The turn to record: above each of the task's turns in the view, and rising with each write of the task. */
  turn: number;
}

/** Directed runs: each is claimed by its addressee or withdrawn from it, and never both. */
export interface RouteStore {
  /**
   * Returns ready runs without an addressee that are due by `untilMs`, and the workers that could run them.
   * @param goneMs a release is gone if its last worker ended before this time
   */
  view(untilMs: number, limit: number, exceptTaskIds: number[], goneMs: number): Promise<RouteView>;
  /**
   * Addresses runs that are still ready and without an addressee to sessions that are alive and not stopping. Never gives one worker more
   * runs of a task than the task allows. Repeatable. @returns the runs that were addressed, and the tasks for which another router has
   * chosen since the view: none of their writes was applied, and the caller must view them again
   */
  address(writes: AddressWrite[], nowMs: number): Promise<{ addressed: Set<number>; overtaken: Set<number> }>;
  /**
   * Splits one run into `total` parts; the run itself becomes the first part. Repeatable: a part is not split again.
   * @param addressees one for each part of a broadcast; null: each part gets one later
   */
  split(runId: number, total: number, addressees: { sessionId: number; node: string }[] | null): Promise<void>;
  /**
   * Ends a run that is still ready and without an addressee, because no worker is left that may run it: as cancelled if it had not begun,
   * else as failed. Repeatable. @param release the release that the run is pinned to; null: the run is a part of a broadcast whose worker
   * left
   */
  giveUp(runId: number, release: string | null, nowMs: number): Promise<void>;
  /**
   * Takes back addressed runs that are not claimed: those of sessions that ended or are stopping, and a few of those that were due before
   * `lateMs` and that another worker could run.
   * @param lateMs null: take back no late runs
   * @returns how many
   */
  withdraw(lateMs: number | null): Promise<number>;
  /** Sessions to which runs could be addressed. */
  sessions(): Promise<number[]>;
  /** Distributes unclaimed parts again, because workers were added. @returns how many */
  spread(): Promise<number>;
  /** Marks this session as taking no more runs; unclaimed runs addressed to it go to other workers. */
  drain(sessionId: number): Promise<void>;
}
