import type { Json } from "../base/json.ts";
import type { RunLabels } from "../task/kinds/run-labels.ts";
import type { Overrides } from "./enqueue-options.ts";
import type { LiveState, Outcome, RunSource } from "./run.ts";

export type { RunSource } from "./run.ts";

export interface EnqueueWrite {
  taskId: number;
  payload: string | null;
  dueMs: number;
  key: string | null;
  /** The key for limits and routing by hash; null or absent: the run's key. */
  limitKey?: string | null;
  /** The run's own policies; absent or null: the task's. */
  overrides?: Overrides | null;
  /** If the run has not begun by then, it ends as skipped; absent or null: it does not expire. */
  expiresMs?: number | null;
  /** Labels of the run in addition to the task's; a label with the same name replaces the task's. */
  labels?: RunLabels | null;
  /** A number drawn for the run in advance: if a run with this number exists, it is this run. */
  runId?: number | undefined;
  /** The run replaces an unfinished run that has the key and has not had a try. */
  replaces?: boolean;
  /** With `replaces`: if the run with the key has begun, this run follows it, in place of an earlier run that was to follow. */
  again?: boolean;
  /** This run stands for its key for this long, even after it has ended: see `uniqueFor`. */
  uniqueForMs?: number;
  /** With `replaces`: the run is due at most this long after the first enqueue that it stands for. */
  maxWaitMs?: number;
  /** null: the task's priority. */
  priority: number | null;
  source: RunSource;
  /** The span of a traced enqueue, in the format of the traceparent header, stored with the run. */
  context?: string | undefined;
}

/** The origin of a traced run: the span that enqueued it, or a run that began it. */
export interface RunOrigin {
  runId: number;
  context: string;
  createdMs: number;
  /** True if the run continues one run or follows several. */
  apart: boolean;
}

export interface Enqueued {
  runId: number;
  /** False: this is an existing run of the task, which is unfinished and has the key, or stands for the key. */
  created: boolean;
  /** The waiting run with the key, which ended as skipped because this run replaces it. */
  replaced?: number | undefined;
  /** True if the run with the key has begun, and this run follows its end. */
  again?: boolean | undefined;
}

export interface RunRecord {
  runId: number;
  task: string;
  taskId: number;
  version: number;
  state: LiveState | Outcome;
  source: RunSource;
  priority: number;
  key: string | null;
  slotMs: number | null;
  dueMs: number;
  /** Since when the run waited only for a worker, if that is later than `dueMs`: see handling/lateness.ts. */
  readyMs?: number | null;
  createdMs: number;
  claimedMs: number | null;
  startedMs: number | null;
  endedMs: number | null;
  attempt: number;
  fence: number | null;
  node: string | null;
  /** The node that the run is addressed to, while no worker has claimed it. */
  addressee?: string | null;
  limitKey?: string | null;
  shard?: [index: number, total: number] | null;
  overrides?: Overrides | null;
  expiresMs?: number | null;
  /** null: the run has no labels. */
  labels?: RunLabels | null;
  payload: Json;
  progress: Json;
  result: Json;
  error: Json;
}

export interface AttemptRecord {
  attempt: number;
  fence: number;
  node: string | null;
  claimedMs: number | null;
  startedMs: number | null;
  endedMs: number;
  outcome: string;
  error: Json;
}

export interface LogLine {
  runId: number;
  /** For a store that must check whether the writer of the line has the run. */
  fence?: number;
  attempt: number;
  atMs: number;
  level: "debug" | "info" | "warn" | "error";
  message: string;
  fields: Json;
}

/** Properties by which lists of runs can be filtered, in addition to task and state. */
export interface RunMatch {
  /** The group of the run's task. */
  group?: string;
  /** The run's task is in one of these namespaces. */
  namespaces?: readonly string[];
  /** Allowed only together with a task, because a key is unique only among the unfinished runs of a task. */
  key?: string;
  source?: RunSource;
  /** The run has all of these labels. */
  labels?: RunLabels;
}

export interface RunFilter extends RunMatch {
  task?: string;
  states?: (LiveState | Outcome)[];
  /** Ended or due at or after this time. */
  sinceMs?: number;
  limit: number;
}
