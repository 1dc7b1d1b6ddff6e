import type { Member, Term } from "../cluster/session-store.ts";
import type { DeadLetter } from "../run/dead-letters.ts";
import type { LateResult, Relative } from "../run/flow.ts";
import type { OperationFilter, OperationRecord } from "../run/operations.ts";
import type { LiveState, Outcome } from "../run/run.ts";
import type { AttemptRecord, LogLine, RunRecord } from "../run/run-record.ts";
import type { SlotRecord } from "../slots/history-store.ts";
import type { TaskRecord, VersionRecord } from "../task/task-record.ts";

/** Where a run stands in the list of runs: first the live ones by due time, then the ended ones, the latest first. */
export type RunPlace = { phase: "live" | "ended"; atMs: number; runId: number };

export interface RunBrowse {
  taskId: number | null;
  states: (LiveState | Outcome)[];
  /** Of ready runs only those that are due before; null: all. */
  readyBeforeMs: number | null;
  sinceMs: number | null;
  untilMs: number | null;
  after: RunPlace | null;
  limit: number;
}

export interface TaskBrowse {
  afterName: string;
  group: string | null;
  /** With * and ?. */
  matching: string | null;
  paused: boolean | null;
  /** Of these alone; null: of all. */
  namespaces: readonly string[] | null;
  /** The schedules of this task alone. */
  of: string | null;
  /** false: no schedules of tasks. */
  schedules: boolean;
  limit: number;
}

/** A log line's place: lines of one moment are told apart by where they lie. */
export interface LogPlace {
  atMs: number;
  lies: string;
}

export type PlacedLine = LogLine & { lies: string };

/**
 * How far a log was read in the order of arrival: all lines that the snapshot `seen` has (null: none), and of those that only the snapshot
 * `reading` has, the ones up to `place`; null: no such snapshot was begun.
 */
export interface LogRead {
  seen: string | null;
  reading: string | null;
  place: LogPlace | null;
}

/** What of a log is looked at: without it all, the oldest line first. */
export interface LogLook {
  /** The newest first; places are then those before a line. */
  newest?: boolean;
  /** No lines of a lesser level. */
  level?: LogLine["level"];
  /** Only lines that have this in message or fields; A to Z are the same as a to z. */
  find?: string;
}

export interface WorkerRecord extends Member {
  held: number;
}

/**
 * The part of the store's port that lists are read by: each by its key and from a place, never by a number of rows to pass over,
 * so that a page costs the same wherever it is and however much there is.
 */
export interface BrowseStore {
  tasks(browse: TaskBrowse): Promise<TaskRecord[]>;
  /** Tasks that fire, those whose next slot that is not planned yet comes first in front. */
  comingTasks(namespaces: readonly string[] | null, limit: number): Promise<TaskRecord[]>;
  /** Newest first. @param beforeVersion exclusive */
  versions(taskId: number, beforeVersion: number, limit: number): Promise<VersionRecord[]>;
  /** Those of these versions that there are. */
  versionsAt(taskId: number, versions: number[]): Promise<VersionRecord[]>;
  slots(taskId: number, fromMs: number, beforeMs: number, limit: number): Promise<SlotRecord[]>;
  /** Without payload, progress and result; of errors code and message. */
  runs(browse: RunBrowse): Promise<RunRecord[]>;
  /** What one asks of a run by its number, of many at once, each in its place; null: there is none. @param relativesMost of each */
  whole(runIds: number[], relativesMost: number): Promise<(WholeRun | null)[]>;
  /** @returns with the snapshot that the lines were read by: `arrived` goes on behind it */
  logs(
    runId: number,
    beside: LogPlace | null,
    limit: number,
    look?: LogLook,
  ): Promise<{ lines: PlacedLine[]; seen: string }>;
  /** The lines that were not read yet, and the snapshot that has them: of one snapshot by time, and those of a later one after them. */
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
  /** @param namespaces whose tasks and calendars; null: everyone's */
  search(text: string, namespaces: readonly string[] | null, limit: number): Promise<Found>;
}

export interface WholeRun {
  run: RunRecord;
  /** Those that did not end it. */
  attempts: AttemptRecord[];
  relatives: Relative[];
  /** Verdicts that came too late. */
  late: LateResult[];
  letter: Pick<DeadLetter, "fingerprint" | "state" | "redrivenBy"> | null;
  /** The dead letter that it was made of. */
  redrives: number | null;
}

export interface Found {
  tasks: { name: string; group: string }[];
  runs: RunRecord[];
  workers: { node: string; role: "node" | "worker" }[];
  calendars: string[];
}
