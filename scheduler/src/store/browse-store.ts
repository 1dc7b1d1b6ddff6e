import type { Member, Term } from "../cluster/session-store.ts";
import type { DeadLetter } from "../run/dead-letters.ts";
import type { LateResult, Relative } from "../run/flow.ts";
import type { OperationFilter, OperationRecord } from "../run/operations.ts";
import type { LiveState, Outcome } from "../run/run.ts";
import type { AttemptRecord, LogLine, RunMatch, RunRecord } from "../run/run-record.ts";
import type { AlikeTasks } from "../slots/alike-tasks.ts";
import type { SlotRecord } from "../slots/history-store.ts";
import type { TaskRecord, VersionRecord } from "../task/task-record.ts";

/** A run's position in the list of runs: first the live ones by due time, then the ended ones, the latest first. */
export type RunPlace = { phase: "live" | "ended"; atMs: number; runId: number };

export const placeOfRun = ({ endedMs, dueMs, runId }: Pick<RunRecord, "endedMs" | "dueMs" | "runId">): RunPlace =>
  endedMs === null ? { phase: "live", atMs: dueMs, runId } : { phase: "ended", atMs: endedMs, runId };

export interface RunBrowse {
  taskId: number | null;
  states: (LiveState | Outcome)[];
  /** Only ready runs due before this time; null: all. */
  readyBeforeMs: number | null;
  sinceMs: number | null;
  untilMs: number | null;
  after: RunPlace | null;
  limit: number;
  match?: RunMatch;
}

/**
 * `next`: the position after which the list goes on; null: the list has ended. A page may have a `next` although it has fewer runs than the
 * limit.
 */
export interface RunPage {
  runs: RunRecord[];
  next: RunPlace | null;
}

export interface TaskBrowse {
  afterName: string;
  group: string | null;
  /** A pattern with * and ?. */
  matching: string | null;
  paused: boolean | null;
  /** Only these namespaces; null: all. */
  namespaces: readonly string[] | null;
  /** Only the schedules of this task. */
  of: string | null;
  /** false: omits the schedules of tasks. */
  schedules: boolean;
  limit: number;
}

/** A log line's position: lines of one moment are distinguished by their physical location. */
export interface LogPlace {
  atMs: number;
  lies: string;
}

export type PlacedLine = LogLine & { lies: string };

/**
 * How far a log was read in the order in which its lines arrived. All lines visible to the snapshot `seen` were read (null: none). Of the
 * lines visible only to the later snapshot `reading`, those up to `place` were read; null: no later snapshot has been begun.
 */
export interface LogRead {
  seen: string | null;
  reading: string | null;
  place: LogPlace | null;
}

/** Which part of a log is read; default: the whole log, oldest line first. */
export interface LogLook {
  /** True: newest lines first; a position then means the lines before it. */
  newest?: boolean;
  /** Omits lines below this level. */
  level?: LogLine["level"];
  /** Only lines that contain this text in message or fields; A to Z match a to z. */
  find?: string;
}

export interface WorkerRecord extends Member {
  held: number;
}

/**
 * The part of the store's port for reading lists: each page starts from a key's position, never from a number of rows to skip, so that a
 * page costs the same at any position and any list length.
 */
export interface BrowseStore {
  tasks(browse: TaskBrowse): Promise<TaskRecord[]>;
  /** All tasks of the filter, schedules of tasks included, gathered by when they fire. Removed tasks are left out. */
  alikeTasks(filter: Pick<TaskBrowse, "group" | "matching" | "namespaces">): Promise<AlikeTasks[]>;
  /** Tasks that fire, ordered by their next slot that is not planned yet. */
  comingTasks(namespaces: readonly string[] | null, limit: number): Promise<TaskRecord[]>;
  /** Newest first. @param beforeVersion exclusive upper bound */
  versions(taskId: number, beforeVersion: number, limit: number): Promise<VersionRecord[]>;
  /** Returns those of these versions that exist. */
  versionsAt(taskId: number, versions: number[]): Promise<VersionRecord[]>;
  slots(taskId: number, fromMs: number, beforeMs: number, limit: number): Promise<SlotRecord[]>;
  /**
   * Returns a page of runs, without payload, progress and result; errors have only code and message. Labels have an index. A source, a key,
   * or a group or namespace of many tasks has none: in that case a call reads a limited number of runs, and returns those of them that
   * match.
   * @throws OPTION_INVALID for a key without a task
   */
  runs(browse: RunBrowse): Promise<RunPage>;
  /**
   * Returns many runs at once by number, each at its index and with its related data; null: no such run. @param relativesMost the limit per
   * run
   */
  whole(runIds: number[], relativesMost: number): Promise<(WholeRun | null)[]>;
  /** @returns also the snapshot with which the lines were read: `arrived` continues after it */
  logs(
    runId: number,
    beside: LogPlace | null,
    limit: number,
    look?: LogLook,
  ): Promise<{ lines: PlacedLine[]; seen: string }>;
  /**
   * Returns the lines not read yet, and the snapshot that contains them: lines of one snapshot ordered by time, then those of a later one.
   */
  arrived(runId: number, read: LogRead, limit: number): Promise<{ lines: PlacedLine[]; reading: string }>;
  letters(
    filter: OperationFilter,
    before: { endedMs: number; runId: number } | null,
    limit: number,
  ): Promise<DeadLetter[]>;
  operations(beforeId: number, limit: number): Promise<OperationRecord[]>;
  nodes(afterName: string, limit: number): Promise<Member[]>;
  workers(afterName: string, group: string | null, limit: number): Promise<WorkerRecord[]>;
  terms(beforeTerm: number, limit: number): Promise<Term[]>;
  /** @param namespaces the namespaces of tasks and calendars; null: all */
  search(text: string, namespaces: readonly string[] | null, limit: number): Promise<Found>;
}

export interface WholeRun {
  run: RunRecord;
  /** The attempts that failed or were postponed without ending the run. */
  attempts: AttemptRecord[];
  relatives: Relative[];
  /** Verdicts that arrived too late. */
  late: LateResult[];
  letter: Pick<DeadLetter, "fingerprint" | "state" | "redrivenBy"> | null;
  /** The dead letter that this run redrives. */
  redrives: number | null;
}

export interface Found {
  tasks: { name: string; group: string }[];
  runs: RunRecord[];
  workers: { node: string; role: "node" | "worker" }[];
  calendars: string[];
}
