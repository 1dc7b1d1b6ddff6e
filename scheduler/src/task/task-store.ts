import type { Change, SqlClient } from "../base/change.ts";
import type { Release } from "./release.ts";
import type { TaskDefinition } from "./task.ts";
import type {
  Adopted,
  Counters,
  ReleaseOfTask,
  SchedulesFollowed,
  SchedulesSaved,
  TaskChange,
  TaskRecord,
  VersionRecord,
  ZonesFollowed,
} from "./task-record.ts";

/** @param client in the transaction of a change that is about to be made */
export interface Paused {
  /** Runs that are claimed and whose start is not recorded; their workers are asked to give them back. */
  recalled: number[];
  /** Number of waiting runs that stay until the task is resumed: enqueued runs, and runs of a backfill. */
  held: number;
  /** Number of due slots that waited for a slot of concurrency: their runs ended as skipped. */
  skipped: number;
}

export interface PauseChange extends Change {
  /** When the task is resumed automatically; a pause of a paused task replaces this. Absent: it is resumed only by hand. */
  untilMs?: number | null;
}

export interface Removed {
  /** Runs that are claimed and whose start is not recorded; their workers are asked to give them back. */
  recalled: number[];
  /** Waiting runs that ended with the task. */
  ended: number;
}

/** The result of replanning after cluster time went back. */
export interface ReplannedAhead {
  /** The highest cluster time that was reached. */
  reachedMs: number;
  /** Number of tasks that are planned from now on. */
  tasks: number;
  /** Number of runs that were enqueued, or scheduled for a retry, by the clock that was ahead: they keep their due times. */
  waiting: number;
}

export type IsWanted = (client: SqlClient) => Promise<boolean>;

export interface BroughtBy {
  release: Release;
  /** How long a release backs its definitions after the last of its processes was seen, in ms. */
  graceMs: number;
}

/** A task as the store has it after a process has brought its definition. */
export type BroughtTask = TaskRecord & {
  /** The task has the definition of another release, which stays in force. */
  isOthers?: true;
};

export interface TaskStore {
  /**
   * Creates the task, or stores a new version when the definition differs; runs planned for the old version and not claimed are withdrawn
   * in the same transaction. Repeatable: an equal definition changes nothing.
   * @param expectedVersion rejects with TASK_STALE unless this is the stored version; null: any version
   * @param client the caller's own transaction on the store's database, in which the change is made
   */
  save(
    definition: TaskDefinition,
    expectedVersion: number | null,
    change: Change,
    client?: SqlClient,
  ): Promise<{ record: TaskRecord; changed: boolean }>;
  /**
   * Stores each definition as the code of a release gives it. Parts that were edited by hand stay (see edits.ts), and a definition that
   * another release backs stays where that release prevails (see release.ts). All names that are new to the store go in one statement; each
   * changed definition has a transaction of its own. Repeatable. For up to about a thousand definitions.
   * @returns their records, in any order
   */
  saveAll(definitions: readonly TaskDefinition[], change: Change, by: BroughtBy): Promise<BroughtTask[]>;
  /** Finds tasks whose definition no release has backed for `graceMs`, and gives them the definition of the newest live release. */
  adoptLeft(graceMs: number, change: Change): Promise<Adopted[]>;
  /**
   * Puts the time zone rules of this process's database in force where they are newer, and replans the tasks that were planned by other
   * rules, each in a transaction of its own. Repeatable.
   */
  followZones(change: Change): Promise<ZonesFollowed>;
  /**
   * Updates the definitions of schedules whose task has changed since, and removes those whose task was removed, each in a transaction of
   * its own. Repeatable. @param taskIds the tasks to look at; null: all
   */
  followTasks(taskIds: number[] | null, change: Change): Promise<SchedulesFollowed>;
  /**
   * Stores schedules of one task, each as `save` does: new names go in one statement, each other schedule in a transaction of its own.
   * Repeatable. For up to some hundreds of schedules.
   * @param client the caller's own transaction, in which all of them are stored
   */
  saveSchedules(
    of: string,
    definitions: readonly TaskDefinition[],
    change: Change,
    client?: SqlClient,
  ): Promise<SchedulesSaved>;
  /**
   * Removes tasks with `atEnd: "remove"` that have no slot left, no waiting or running run, and no open dead letter, each in a transaction
   * of its own. Repeatable. @returns their names
   */
  removeEnded(change: Change): Promise<string[]>;
  /** The schedules of a task, in the order of their names. @param afterName only those after this name @param most the maximum number */
  schedulesOf(name: string, afterName: string, most: number): Promise<TaskRecord[]>;
  /** The number of schedules of each of these tasks; tasks without schedules are left out. */
  scheduleCounts(names: string[]): Promise<Map<string, number>>;
  /** The releases that bring a definition of the task, the newest first. */
  releasesOf(name: string): Promise<ReleaseOfTask[]>;
  /** Deletes releases that have had no live process since `beforeMs`. */
  forgetReleases(beforeMs: number): Promise<void>;
  /** @throws TASK_UNKNOWN */
  byName(name: string): Promise<TaskRecord>;
  /** The id of a name, which stays the same when the task is removed. @throws TASK_UNKNOWN: no task ever had the name */
  idOf(name: string): Promise<number>;
  /** Returns those of these tasks that exist and are not removed. */
  byNames(names: string[]): Promise<TaskRecord[]>;
  byIds(taskIds: number[]): Promise<TaskRecord[]>;
  /** Tasks whose last change (an edit, a pause, a resume, a removal) was made at or after `sinceMs`. */
  changedSince(sinceMs: number): Promise<TaskChange[]>;
  list(): Promise<TaskRecord[]>;
  /** A task's versions, newest first, also for a removed task. @throws TASK_UNKNOWN: no task ever had the name */
  versions(name: string): Promise<VersionRecord[]>;
  /**
   * Pauses the task and withdraws runs that are planned and not claimed.
   * @param isWanted called in the change's own transaction, with the task locked: returns whether the change is still to be made
   */
  pause(name: string, change: PauseChange, isWanted?: IsWanted): Promise<Paused>;
  resume(name: string, change: Change, isWanted?: IsWanted): Promise<void>;
  /**
   * Resumes tasks whose pause is over, counted from the pause's end. @returns their names, and when the next pause ends; null: no pause has
   * an end
   */
  endPauses(change: Change): Promise<{ resumed: string[]; nextMs: number | null }>;
  /**
   * Pauses those of these tasks with `pauseAfter` failed runs in a row.
   * @param taskIds null: all tasks with a failure in the last hour
   * @returns their names
   */
  pauseFailing(taskIds: number[] | null, change: Change): Promise<string[]>;
  /**
   * Replans the tasks whose next slots are far ahead because cluster time went back; they are planned from now on.
   * @returns undefined: cluster time is not behind its highest known value
   */
  replanAhead(change: Change): Promise<ReplannedAhead | undefined>;
  /**
   * For tasks changed since `changedSinceMs`: makes runs claimable again that the change left set aside, see set-aside.ts. @returns their
   * number
   */
  takeUpLeft(changedSinceMs: number, nowMs: number): Promise<number>;
  /**
   * Removes one schedule. @param name the name of the schedule as a task
   * @param of the name of the task that the schedule belongs to
   * @param client the caller's own transaction; with it, no claimed run is recalled
   * @throws TASK_UNKNOWN: the task has no such schedule
   */
  removeSchedule(name: string, of: string, change: Change, client?: SqlClient): Promise<Removed>;
  /** Removes the task with its schedules. @param expectedVersion as in `save` */
  remove(name: string, change: Change, expectedVersion?: number | null): Promise<Removed>;
  /** Exact counts, equal to the number of ended rows. */
  counters(taskIds: number[]): Promise<Map<number, Counters>>;
  /** Folds counter rows together. @returns how many were folded */
  foldCounters(limit: number): Promise<number>;
  /** The number of the group, which is created if it is new. */
  group(name: string): Promise<number>;
}
