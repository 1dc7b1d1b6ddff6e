import type { Member, Term } from "../cluster/session-store.ts";
import type { DeadLetter } from "../run/dead-letters.ts";
import type { LateResult, Relative } from "../run/flow.ts";
import type { OperationFilter, OperationRecord } from "../run/operations.ts";
import type { LiveState, Outcome } from "../run/run.ts";
import type { AttemptRecord, LogLine, RunMatch, RunRecord } from "../run/run-record.ts";
import type { AlikeTasks } from "../slots/alike-tasks.ts";
import type { SlotRecord } from "../slots/history-store.ts";
import type { TaskRecord, VersionRecord } from "../task/task-record.ts";

/** The position of a run in a list of runs. A list contains live runs by due time, then ended runs, latest first. */
export type RunPlace = { phase: "live" | "ended"; atMs: number; runId: number };

export const placeOfRun = ({ endedMs, dueMs, runId }: Pick<RunRecord, "endedMs" | "dueMs" | "runId">): RunPlace =>
  endedMs === null ? { phase: "live", atMs: dueMs, runId } : { phase: "ended", atMs: endedMs, runId };

export interface RunBrowse {
  taskId: number | null;
  states: (LiveState | Outcome)[];
  /** Leaves out ready runs that are due at this time or later; null: none. Runs in other states are not affected. */
  readyBeforeMs: number | null;
  sinceMs: number | null;
  untilMs: number | null;
  after: RunPlace | null;
  limit: number;
  match?: RunMatch;
}

/**
 * A page of a list of runs. `next` is the position after which the list continues; null if the list has ended. A page may have a `next`
 * even if it has fewer runs than the limit.
 */
export interface RunPage {
  runs: RunRecord[];
  next: RunPlace | null;
}

export interface TaskBrowse {
  afterName: string;
  group: string | null;
  /** A pattern for task names, in which * matches any text and ? one character. */
  matching: string | null;
  paused: boolean | null;
  /** Only tasks whose option `owner` is this text. */
  owner: string | null;
  /** Only tasks in these namespaces; null: all. */
  namespaces: readonly string[] | null;
  /** Only the named schedules of this task. */
  of: string | null;
  /** False: leaves out the named schedules of tasks. */
  schedules: boolean;
  limit: number;
}

/** The position of a log line. Lines with the same time are distinguished by the physical location of their rows (`lies`). */
export interface LogPlace {
  atMs: number;
  lies: string;
}

export type PlacedLine = LogLine & { lies: string };

/**
 * How far a log was read, in the order in which its lines arrived. All lines visible in the snapshot `seen` have been read (null: none). Of
 * the lines visible only in the later snapshot `reading`, those up to `place` have been read; null if no later snapshot has been started.
 */
export interface LogRead {
  seen: string | null;
  reading: string | null;
  place: LogPlace | null;
}

/** A process that did not end its session itself. */
export interface LostWorker {
  node: string;
  role: "node" | "worker";
  host: string;
  pid: number;
  groups: string[];
  startedMs: number;
  seenMs: number;
  endedMs: number;
  why: string;
}

/** Selects the part of a log to read. Default: the whole log, oldest line first. */
export interface LogLook {
  /** True: newest line first; a position then means the lines before it. */
  newest?: boolean;
  /** Leaves out lines below this level. */
  level?: LogLine["level"];
  /** Only lines of this attempt. */
  attempt?: number;
  /** Only lines whose message or fields contain this text; the letters A to Z also match a to z. */
  find?: string;
}

export interface WorkerRecord extends Member {
  held: number;
}

/**
 * Reads lists in pages. Each page starts at a position in an index, never after a number of rows to skip, so a page costs about the same at
 * any position and in a list of any length.
 */
export interface BrowseStore {
  tasks(browse: TaskBrowse): Promise<TaskRecord[]>;
  /**
   * Returns all tasks that match, including named schedules, grouped by when they fire. Removed tasks are left out.
   * @param filter with `labels`: only tasks whose `runLabels` have all of these
   */
  alikeTasks(
    filter: Pick<TaskBrowse, "group" | "matching" | "namespaces"> & Pick<OperationFilter, "labels">,
  ): Promise<AlikeTasks[]>;
  /** Returns the tasks with the earliest next slots that are not planned yet, in any order; paused tasks are left out. */
  comingTasks(namespaces: readonly string[] | null, limit: number): Promise<TaskRecord[]>;
  /** Returns the versions of a task, newest first. @param beforeVersion an exclusive upper bound */
  versions(taskId: number, beforeVersion: number, limit: number): Promise<VersionRecord[]>;
  /** Returns those of the given versions that exist. */
  versionsAt(taskId: number, versions: number[]): Promise<VersionRecord[]>;
  slots(taskId: number, fromMs: number, beforeMs: number, limit: number): Promise<SlotRecord[]>;
  /**
   * Returns a page of runs without payload, progress and result; errors have only their code and message. Filters by labels use an index.
   * No index covers a filter by source, by the key of ended runs, or by a group or namespace with many tasks: a call then reads a limited
   * number of runs and returns those that match.
   * @throws OPTION_INVALID for a key without a task
   */
  runs(browse: RunBrowse): Promise<RunPage>;
  /**
   * Returns several runs with related data, in the order of the ids; null for an id without a run.
   * @param relativesMost the maximum number of related runs per run and namespace, so that those that a caller may see are not displaced by
   * others
   */
  whole(runIds: number[], relativesMost: number): Promise<(WholeRun | null)[]>;
  /** @returns the lines, and the snapshot in which they were read; `arrived` continues after this snapshot */
  logs(
    runId: number,
    beside: LogPlace | null,
    limit: number,
    look?: LogLook,
  ): Promise<{ lines: PlacedLine[]; seen: string }>;
  /**
   * Returns lines that have not been read yet and the snapshot that contains them. Lines of one snapshot are ordered by time, and come
   * before those of a later snapshot.
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
  /** Returns the sessions of workers that were found lost at or after `sinceMs` and whose names no session has now, latest first. */
  lostWorkers(sinceMs: number, limit: number): Promise<LostWorker[]>;
  terms(beforeTerm: number, limit: number): Promise<Term[]>;
  /** @param namespaces only tasks and calendars in these namespaces are found; null: all */
  search(text: string, namespaces: readonly string[] | null, limit: number): Promise<Found>;
}

export interface WholeRun {
  run: RunRecord;
  /** The attempts that did not end the run, because they failed or were postponed. */
  attempts: AttemptRecord[];
  relatives: Relative[];
  /** Verdicts that arrived after the claim had ended. */
  late: LateResult[];
  letter: Pick<DeadLetter, "fingerprint" | "state" | "redrivenBy"> | null;
  /** The id of the run whose dead letter this run redrives; null if there is none. */
  redrives: number | null;
}

export interface Found {
  tasks: { name: string; group: string }[];
  runs: RunRecord[];
  workers: { node: string; role: "node" | "worker" }[];
  calendars: string[];
}
