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
  /** Runs claimed and not known to be started, now asked back. */
  recalled: number[];
  /** Waiting runs that stay until the task is resumed: those that were enqueued, and those of a backfill. */
  held: number;
  /** Slots that had come due and waited for a place: their runs ended as skipped. */
  skipped: number;
}

export interface PauseChange extends Change {
  /** When the task is resumed by itself; a pause of a paused task sets this anew. Without it: not before it is resumed. */
  untilMs?: number | null;
}

export interface Removed {
  /** Runs claimed and not known to be started, now asked back. */
  recalled: number[];
  /** Waiting runs that ended with the task. */
  ended: number;
}

/** After cluster time went back. */
export interface ReplannedAhead {
  /** How far cluster time had come. */
  reachedMs: number;
  /** Tasks that are planned from now on. */
  tasks: number;
  /** Runs that were enqueued, or are to be tried again, by the clock that was ahead: they keep their due times. */
  waiting: number;
}

export type IsWanted = (client: SqlClient) => Promise<boolean>;

export interface BroughtBy {
  release: Release;
  /** How long a release stands behind its definitions after the last of its processes was seen. */
  graceMs: number;
}

/** A task as the store has it after a process has brought its definition. */
export type BroughtTask = TaskRecord & {
  /** It has the definition of another release, which stays. */
  isOthers?: true;
};

export interface TaskStore {
  /**
   * Creates the task, or stores a new version when the definition differs; what was planned for the old one and is not
   * claimed is withdrawn in the same transaction. Repeatable: an equal definition changes nothing.
   * @param expectedVersion refuse with TASK_STALE unless this is the stored version; null: whatever is there
   * @param client a caller's own transaction on the store's database, of which it is a part
   */
  save(
    definition: TaskDefinition,
    expectedVersion: number | null,
    change: Change,
    client?: SqlClient,
  ): Promise<{ record: TaskRecord; changed: boolean }>;
  /**
   * Stores each as the code of a release says; parts that were edited by hand stay so (see edits.ts), and so does a definition
   * that another release stands behind, where that counts (see release.ts). Those that the store has never had in one statement
   * together, a definition changed by a transaction of its own. Repeatable. For a thousand at a time.
   * @returns their records, in any order
   */
  saveAll(definitions: readonly TaskDefinition[], change: Change, by: BroughtBy): Promise<BroughtTask[]>;
  /** Gives tasks whose definition nobody has stood behind for `graceMs` the one of the newest release that lives. */
  adoptLeft(graceMs: number, change: Change): Promise<Adopted[]>;
  /**
   * Puts the rules of time zones in force by which this process's database, where it is newer, has them, and plans the tasks anew that were
   * planned by others: each in a transaction of its own. Repeatable.
   */
  followZones(change: Change): Promise<ZonesFollowed>;
  /**
   * Makes the definitions anew of schedules whose task has changed since they were made, and removes those whose task was removed: each in
   * a transaction of its own. Repeatable. @param taskIds of these tasks; null: of any
   */
  followTasks(taskIds: number[] | null, change: Change): Promise<SchedulesFollowed>;
  /**
   * Stores schedules of one task, as `save` does each: those whose names the store has never had in one statement, others each in a
   * transaction of its own. Repeatable. For some hundreds at a time.
   * @param client a caller's own transaction, of which all is a part
   */
  saveSchedules(
    of: string,
    definitions: readonly TaskDefinition[],
    change: Change,
    client?: SqlClient,
  ): Promise<SchedulesSaved>;
  /**
   * Removes tasks with `atEnd: "remove"` that have no slot left, no run that waits or runs, and no open dead letter: each in a transaction of
   * its own. Repeatable. @returns their names
   */
  removeEnded(change: Change): Promise<string[]>;
  /** The schedules of a task, in the order of their names. @param afterName those after this name @param most so many */
  schedulesOf(name: string, afterName: string, most: number): Promise<TaskRecord[]>;
  /** How many each of these tasks has; those without are left out. */
  scheduleCounts(names: string[]): Promise<Map<string, number>>;
  /** Which releases bring a definition of the task, the newest first. */
  releasesOf(name: string): Promise<ReleaseOfTask[]>;
  /** Forgets releases that nobody has lived of since then. */
  forgetReleases(beforeMs: number): Promise<void>;
  /** @throws TASK_UNKNOWN */
  byName(name: string): Promise<TaskRecord>;
  /** The number of a name, which it keeps also when its task is removed. @throws TASK_UNKNOWN: no task ever had it */
  idOf(name: string): Promise<number>;
  /** Those that exist and are not removed. */
  byNames(names: string[]): Promise<TaskRecord[]>;
  byIds(taskIds: number[]): Promise<TaskRecord[]>;
  /** Tasks whose last change was made then or later: an edit, a pause, a resume, a removal. */
  changedSince(sinceMs: number): Promise<TaskChange[]>;
  list(): Promise<TaskRecord[]>;
  /** Newest first; also of a task that was removed. @throws TASK_UNKNOWN: there never was one */
  versions(name: string): Promise<VersionRecord[]>;
  /**
   * Withdraws what is planned and not claimed. @param isWanted asked in the change's own transaction, with the task locked:
   * whether it is still to be made
   */
  pause(name: string, change: PauseChange, isWanted?: IsWanted): Promise<Paused>;
  resume(name: string, change: Change, isWanted?: IsWanted): Promise<void>;
  /** Resumes tasks whose pause is over, as of its end. @returns their names, and when the next pause ends; null: none does by itself */
  endPauses(change: Change): Promise<{ resumed: string[]; nextMs: number | null }>;
  /**
   * Pauses those of these tasks of which as many runs have failed in a row as their `pauseAfter` says.
   * @param taskIds null: all with a failure in the last hour @returns their names
   */
  pauseFailing(taskIds: number[] | null, change: Change): Promise<string[]>;
  /** Plans tasks from now on whose slots lie ahead because cluster time went back. @returns undefined: it is past all that was seen of it */
  replanAhead(change: Change): Promise<ReplannedAhead | undefined>;
  /** Of tasks changed since: what the change left behind, see set-aside.ts. @returns how many runs */
  takeUpLeft(changedSinceMs: number, nowMs: number): Promise<number>;
  /**
   * A schedule alone, by the name that it has as a task. @param of the task whose schedule it is @param client begun by the caller, who commits;
   * then nothing is recalled @throws TASK_UNKNOWN: there is none of that task
   */
  removeSchedule(name: string, of: string, change: Change, client?: SqlClient): Promise<Removed>;
  /** With its schedules. @param expectedVersion as in `save` */
  remove(name: string, change: Change, expectedVersion?: number | null): Promise<Removed>;
  /** Exact: equal to the rows that ended. */
  counters(taskIds: number[]): Promise<Map<number, Counters>>;
  /** Folds counter rows together. @returns how many were folded */
  foldCounters(limit: number): Promise<number>;
  /** The group's number, created when new. */
  group(name: string): Promise<number>;
}
