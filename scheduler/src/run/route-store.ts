import type { TaskDefinition } from "../task/task.ts";
import type { LiveWorker } from "./routing.ts";

/** A ready run of a routed task that has no addressee yet. */
export interface UnaddressedRun {
  runId: number;
  taskId: number;
  key: string | null;
  shard: [index: number, total: number] | null;
  dueMs: number;
  /** How often it has been claimed. */
  attempt: number;
  /** Of a task with `pin`: the release of its last try's worker, or of the pinned run whose child, next link or join it is. */
  release: string | null;
  /** A worker of that release lives, or has ended since `goneMs`. */
  releaseStands: boolean;
}

/** What the router must know to choose: all of one moment, and only a basis: the write decides. */
export interface RouteView {
  runs: UnaddressedRun[];
  /** There are more than these. */
  more: boolean;
  /** When the next run past `untilMs` is due. */
  nextDueMs: number | null;
  /** `canRun`: of the tasks of these runs; null: any. */
  workers: (Omit<LiveWorker, "ofTask"> & { groups: string[]; canRun: number[] | null })[];
  /** The tasks of these runs. */
  tasks: {
    taskId: number;
    definition: TaskDefinition;
    turns: Record<string, number>;
    /** By session, how many of its runs each has. */
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
   * Ready runs without an addressee that are due by then, and who could have them.
   * @param goneMs a release is gone if its last worker ended before
   */
  view(untilMs: number, limit: number, exceptTaskIds: number[], goneMs: number): Promise<RouteView>;
  /**
   * Addresses runs that are still ready and without an addressee, to sessions that live and do not stop. Never more of a
   * task to one worker than the task allows. Repeatable. @returns the runs that were addressed, and the tasks for which another
   * router has chosen since the view: none of their writes was done, and they are to be viewed again
   */
  address(writes: AddressWrite[]): Promise<{ addressed: Set<number>; overtaken: Set<number> }>;
  /**
   * Makes one run so many, the first of them itself. Repeatable: a part is not split again.
   * @param addressees of a broadcast, one for each part; null: each part gets one later
   */
  split(runId: number, total: number, addressees: { sessionId: number; node: string }[] | null): Promise<void>;
  /**
   * Ends a run that is still ready and without an addressee, since nobody who may run it is left: as cancelled when it had not begun, else
   * as failed. Repeatable. @param release to which it keeps; null: it is a part of a broadcast, whose worker left
   */
  giveUp(runId: number, release: string | null, nowMs: number): Promise<void>;
  /**
   * Takes back what is addressed and not claimed: from sessions that ended or stop, and what was due before `lateMs`
   * where another worker could have it, a few of these. @param lateMs null: none of these @returns how many
   */
  withdraw(lateMs: number | null): Promise<number>;
  /** Those that could be addressed. */
  sessions(): Promise<number[]>;
  /** The parts that nobody has claimed are to be spread anew: workers came. @returns how many */
  spread(): Promise<number>;
  /** This session takes no more; what is addressed to it and not claimed goes to others. */
  drain(sessionId: number): Promise<void>;
}
