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

/** The result of a pause. */
export interface Paused {
  /** The numbers of the task's claimed runs. Their workers are asked to return those that have not started. */
  recalled: number[];
  /** The number of unclaimed runs that wait until the task is resumed: enqueued runs, runs of a backfill, and retries. */
  held: number;
  /** The number of due slots whose runs were not claimed and ended as skipped. */
  skipped: number;
}

export interface PauseChange extends Change {
  /** When the task is resumed automatically; left out or null if it stays paused. A pause of a paused task replaces the former time. */
  untilMs?: number | null;
}

export interface Removed {
  /** The numbers of the task's claimed runs. Their workers are asked to return those that have not started. */
  recalled: number[];
  /** The number of waiting runs that ended with the task. */
  ended: number;
}

/** The result of planning tasks again after cluster time went back. */
export interface ReplannedAhead {
  /** The highest cluster time that was reached, in ms. */
  reachedMs: number;
  /** The number of tasks that were planned again. */
  tasks: number;
  /**
   * The number of unclaimed runs, other than first attempts of slots, that were created while the clock was ahead and are due after now.
   * Their due times do not change.
   */
  waiting: number;
}

export type IsWanted = (client: SqlClient) => Promise<boolean>;

export interface BroughtBy {
  release: Release;
  /** How long a release backs its definitions after the last of its processes was seen, in ms. */
  graceMs: number;
}

/** A task's record after a process has stored the definition in its code. */
export type BroughtTask = TaskRecord & {
  /** Set if the task keeps the definition of another release. */
  isOthers?: true;
};

export interface TaskStore {
  /**
   * Creates the task, or stores a new version if the definition differs. The unclaimed runs of future slots are withdrawn in the same
   * transaction, and the new version is planned instead. It can be repeated: an equal definition changes nothing.
   * @param expectedVersion the stored version; if another version is stored, the call rejects with TASK_STALE. null accepts any
   * version
   * @param client the caller's own transaction on the store's database, in which the change is made
   */
  save(
    definition: TaskDefinition,
    expectedVersion: number | null,
    change: Change,
    client?: SqlClient,
  ): Promise<{ record: TaskRecord; changed: boolean }>;
  /**
   * Stores the definitions in the code of a release. Parts that were edited stay (see edits.ts), and so does a definition of another
   * release that takes precedence (see release.ts). Tasks whose names are new to the store are created in one statement, except tasks
   * with a calendar or `after` and schedules of tasks; these and each changed definition have their own transactions. It can be repeated.
   * It is meant for up to about a thousand definitions.
   * @returns the tasks' records, in any order
   */
  saveAll(definitions: readonly TaskDefinition[], change: Change, by: BroughtBy): Promise<BroughtTask[]>;
  /** Gives tasks whose definition no release has backed for `graceMs` the definition of the newest release with a live process. */
  adoptLeft(graceMs: number, change: Change): Promise<Adopted[]>;
  /**
   * Stores the rules of this process's time zone database for zones where the database is newer, and plans the tasks again that were
   * planned by other rules, each in its own transaction. It can be repeated.
   */
  followZones(change: Change): Promise<ZonesFollowed>;
  /**
   * Updates the definitions of schedules whose task has changed since, and removes schedules whose task was removed, each in its own
   * transaction. It can be repeated.
   * @param taskIds the tasks whose schedules are checked; null for all
   */
  followTasks(taskIds: number[] | null, change: Change): Promise<SchedulesFollowed>;
  /**
   * Stores schedules of one task, each as `save` does: new ones without a calendar in one statement, each other schedule in its own
   * transaction. It can be repeated. It is meant for up to some hundreds of schedules.
   * @param client the caller's own transaction, in which all of them are stored
   */
  saveSchedules(
    of: string,
    definitions: readonly TaskDefinition[],
    change: Change,
    client?: SqlClient,
  ): Promise<SchedulesSaved>;
  /**
   * Removes tasks with `atEnd: "remove"` that have no slot left, no live run, and no open dead letter, each in its own transaction. It can
   * be repeated.
   * @returns the names of the removed tasks
   */
  removeEnded(change: Change): Promise<string[]>;
  /** Returns a task's schedules, ordered by name. @param afterName only schedules after this name @param most the most that are returned */
  schedulesOf(name: string, afterName: string, most: number): Promise<TaskRecord[]>;
  /** Returns the number of schedules of each of these tasks, by name. Tasks without schedules are left out. */
  scheduleCounts(names: string[]): Promise<Map<string, number>>;
  /** Returns the releases that contain a definition of the task, the newest first. */
  releasesOf(name: string): Promise<ReleaseOfTask[]>;
  /**
   * Deletes the records of releases that have no live process and whose tasks have been adopted: those last seen before `beforeMs`,
   * and all but the latest 50.
   */
  forgetReleases(beforeMs: number): Promise<void>;
  /** @throws TASK_UNKNOWN if there is no such task, or it is removed */
  byName(name: string): Promise<TaskRecord>;
  /** Returns the number of the task with this name, which a removal does not change. @throws TASK_UNKNOWN if no task ever had the name */
  idOf(name: string): Promise<number>;
  /** Returns those of these tasks that exist and are not removed, in any order. */
  byNames(names: string[]): Promise<TaskRecord[]>;
  byIds(taskIds: number[]): Promise<TaskRecord[]>;
  /** Returns tasks whose last change (an edit, a pause, a resume, a removal) was made at or after `sinceMs`. */
  changedSince(sinceMs: number): Promise<TaskChange[]>;
  list(): Promise<TaskRecord[]>;
  /** Returns a task's versions, newest first, even if it is removed. @throws TASK_UNKNOWN if no task ever had the name */
  versions(name: string): Promise<VersionRecord[]>;
  /**
   * Pauses the task and withdraws the runs of slots that are planned and not claimed.
   * @param isWanted called in the transaction of the change, with the task locked; if it returns false, nothing is changed
   */
  pause(name: string, change: PauseChange, isWanted?: IsWanted): Promise<Paused>;
  resume(name: string, change: Change, isWanted?: IsWanted): Promise<void>;
  /**
   * Resumes tasks whose pause has ended, as of the end of the pause.
   * @returns their names, and when the next pause ends; null if no pause has an end
   */
  endPauses(change: Change): Promise<{ resumed: string[]; nextMs: number | null }>;
  /**
   * Pauses each of these tasks whose number of failed runs in a row has reached its `pauseAfter`.
   * @param taskIds null for all tasks with an open dead letter from the last hour
   * @returns the names of the paused tasks
   */
  pauseFailing(taskIds: number[] | null, change: Change): Promise<string[]>;
  /**
   * Plans tasks again whose next slots are too far ahead because cluster time went back.
   * @returns undefined if cluster time is not behind its highest known value
   */
  replanAhead(change: Change): Promise<ReplannedAhead | undefined>;
  /**
   * Checks tasks changed since `changedSinceMs` for runs that a concurrent change left in a wrong state, and corrects these runs; see
   * set-aside.ts.
   * @returns the number of corrected runs; the runs of a removed task count as one
   */
  takeUpLeft(changedSinceMs: number, nowMs: number): Promise<number>;
  /**
   * Removes one schedule of a task.
   * @param name the name of the schedule as a task
   * @param of the name of the task to which the schedule belongs
   * @param client the caller's own transaction; with it, no claimed run is recalled
   * @throws TASK_UNKNOWN if the task has no such schedule
   */
  removeSchedule(name: string, of: string, change: Change, client?: SqlClient): Promise<Removed>;
  /** Removes the task and its schedules. @param expectedVersion as in `save` */
  remove(name: string, change: Change, expectedVersion?: number | null): Promise<Removed>;
  /** Returns, by task number, exact counts of ended runs, missed slots and retried attempts. Runs that left no row are included. */
  counters(taskIds: number[]): Promise<Map<number, Counters>>;
  /**
   * Adds counter rows to their tasks' totals. @param limit the most rows
   * @param hour the hour in which they were written, counted from 1970 @returns the number of rows that were added
   */
  foldCounters(limit: number, hour: number): Promise<number>;
  /** Returns the number of the group, which is created if it does not exist. */
  group(name: string): Promise<number>;
}
