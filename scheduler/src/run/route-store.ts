import type { TaskDefinition } from "../task/task.ts";
import type { LiveWorker } from "./routing.ts";

/** A ready run of a routed task that has no addressee yet. */
export interface UnaddressedRun {
  runId: number;
  taskId: number;
  key: string | null;
  shard: [index: number, total: number] | null;
  dueMs: number;
  /** The number of times it has been claimed. */
  attempt: number;
  /** For a task with `pin`: the release of its last try's worker, or of the pinned run whose child, next link or join it is. */
  release: string | null;
  /** A worker of that release lives, or has ended since `goneMs`. */
  releaseStands: boolean;
}

/** The data from which the router chooses: all of one moment, and only a basis: the write decides. */
export interface RouteView {
  runs: UnaddressedRun[];
  /** There are more runs than these. */
  more: boolean;
  /** When the next run past `untilMs` is due. */
  nextDueMs: number | null;
  /** `canRun`: the tasks of these runs that the worker can run; null: any. */
  workers: (Omit<LiveWorker, "ofTask"> & { groups: string[]; canRun: number[] | null })[];
  /** The tasks of these runs. */
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
  /** Above each of the task's turns in the view, and rising with each write of the task. */
  turn: number;
}

/** Directed runs: each is claimed by its addressee or withdrawn from it, and never both. */
export interface RouteStore {
  /**
   * Ready runs without an addressee that are due by then, and the workers that could run them.
   * @param goneMs a release is gone if its last worker ended before
   */
  view(untilMs: number, limit: number, exceptTaskIds: number[], goneMs: number): Promise<RouteView>;
  /**
   * Addresses runs that are still ready and without an addressee, to sessions that live and are not stopping. Never gives one worker more
   * runs of a task than the task allows. Repeatable. @returns the runs that were addressed, and the tasks for which another router has
   * chosen since the view: none of their writes was done, and they are to be viewed again
   */
  address(writes: AddressWrite[]): Promise<{ addressed: Set<number>; overtaken: Set<number> }>;
  /**
   * Splits one run into `total` parts, the first of them the run itself. Repeatable: a part is not split again.
   * @param addressees one for each part of a broadcast; null: each part gets one later
   */
  split(runId: number, total: number, addressees: { sessionId: number; node: string }[] | null): Promise<void>;
  /**
   * Ends a run that is still ready and without an addressee, since no worker that may run it is left: as cancelled if it had not begun,
   * else as failed. Repeatable. @param release the release that it keeps to; null: it is a part of a broadcast, whose worker left
   */
  giveUp(runId: number, release: string | null, nowMs: number): Promise<void>;
  /**
   * Takes back addressed runs that are not claimed: those of sessions that ended or are stopping, and a few of those due before `lateMs`
   * that another worker could run. @param lateMs null: none of the latter @returns how many
   */
  withdraw(lateMs: number | null): Promise<number>;
  /** Sessions to which runs could be addressed. */
  sessions(): Promise<number[]>;
  /** Spreads the unclaimed parts again, since workers came. @returns how many */
  spread(): Promise<number>;
  /** This session takes no more runs; runs addressed to it and not claimed go to other workers. */
  drain(sessionId: number): Promise<void>;
}
