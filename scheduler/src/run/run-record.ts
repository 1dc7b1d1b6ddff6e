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
  /** The key by which it is limited and hashed; null or absent: its key. */
  limitKey?: string | null;
  /** Its own policies; absent or null: the task's. */
  overrides?: Overrides | null;
  /** If it has not begun by then, it ends as skipped; absent or null: it does not expire. */
  expiresMs?: number | null;
  /** Beside its task's, of which they may replace some. */
  labels?: RunLabels | null;
  /** A number drawn for it in advance: an existing run with this number is this run. */
  runId?: number | undefined;
  /** It replaces a run that has the key and has not had a try. */
  replaces?: boolean;
  /** With `replaces`: it follows a run that has the key and has begun, in place of an earlier one that was to. */
  again?: boolean;
  /** This run stands for its key for so long, also when it has ended: see `uniqueFor`. */
  uniqueForMs?: number;
  /** With `replaces`: it is due at most this long after the first enqueue that it stands for. */
  maxWaitMs?: number;
  /** null: the task's priority. */
  priority: number | null;
  source: RunSource;
  /** The span of a traced enqueue, as traceparent writes it. Kept beside the run. */
  context?: string | undefined;
}

/** The origin of a traced run: the span that enqueued it, or a run that began it. */
export interface RunOrigin {
  runId: number;
  context: string;
  createdMs: number;
  /** It goes on from a run, or comes after several. */
  apart: boolean;
}

export interface Enqueued {
  runId: number;
  /** False: a live run of this task had the key already, or one stands for it, and this is that run. */
  created: boolean;
  /** The waiting run with the key, which has ended as skipped in favour of this one. */
  replaced?: number | undefined;
  /** The run with the key has begun, and this enqueue follows its end. */
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
  createdMs: number;
  claimedMs: number | null;
  startedMs: number | null;
  endedMs: number | null;
  attempt: number;
  fence: number | null;
  node: string | null;
  /** The node that it is addressed to, while it is not claimed. */
  addressee?: string | null;
  limitKey?: string | null;
  shard?: [index: number, total: number] | null;
  overrides?: Overrides | null;
  expiresMs?: number | null;
  /** null: it has none. */
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
  /** For a store that must check whether the line's writer has the run. */
  fence?: number;
  attempt: number;
  atMs: number;
  level: "debug" | "info" | "warn" | "error";
  message: string;
  fields: Json;
}

/** Properties of runs that lists can be narrowed to, beside task and state. */
export interface RunMatch {
  /** The group of the run's task. */
  group?: string;
  /** The task is in one of these namespaces. */
  namespaces?: readonly string[];
  /** Only together with a task, within which it is unique among unfinished runs. */
  key?: string;
  source?: RunSource;
  /** It has all of these. */
  labels?: RunLabels;
}

export interface RunFilter extends RunMatch {
  task?: string;
  states?: (LiveState | Outcome)[];
  /** Ended or due at or after this time. */
  sinceMs?: number;
  limit: number;
}
