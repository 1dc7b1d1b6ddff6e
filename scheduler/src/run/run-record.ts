import type { Json } from "../base/json.ts";
import type { RunLabels } from "../task/kinds/run-labels.ts";
import type { EnqueueDurability, Overrides } from "./enqueue-options.ts";
import type { LiveState, Outcome, RunSource } from "./run.ts";

export type { RunSource } from "./run.ts";

export interface EnqueueWrite {
  taskId: number;
  payload: string | null;
  dueMs: number;
  key: string | null;
  /** The key for limits and for routing by hash; null or absent: the run's key is used. */
  limitKey?: string | null;
  /** Policies that replace the task's for this run; absent or null: none. */
  overrides?: Overrides | null;
  /** The run ends as skipped if it has not started by this time; absent or null: it does not expire. */
  expiresMs?: number | null;
  /** The run's labels, in addition to the task's. A label with the same name replaces the task's label. */
  labels?: RunLabels | null;
  /** An id reserved for the run. If a run with this id exists, it is this run, so nothing is created. */
  runId?: number | undefined;
  /** True: the run replaces an unfinished run with the same key that has not had an attempt. */
  replaces?: boolean;
  /**
   * With `replaces`: if the run with the key has already started, this run is created at the end of that run, in place of an
   * earlier enqueue that was to follow it.
   */
  again?: boolean;
  /** For this time, an enqueue of the same key with this option finds this run, even if the run has ended: see `uniqueFor`. */
  uniqueForMs?: number;
  /** With `replaces`: the run is due at most this time after the first of the enqueues that replaced each other. */
  maxWaitMs?: number;
  /** Whether the store acknowledges the run only once it is on disk; absent: as the task says. */
  durability?: EnqueueDurability;
  /** null means the task's priority. */
  priority: number | null;
  source: RunSource;
  /** The span of a traced enqueue, in the format of the traceparent header. It is stored with the run. */
  context?: string | undefined;
}

/** The origin of a traced run: the span that enqueued the run, or the span of a run that created it. */
export interface RunOrigin {
  runId: number;
  context: string;
  createdMs: number;
  /** True if the run continues another run or follows several runs. Its trace is then linked to those runs' traces and not part of them. */
  apart: boolean;
}

export interface Enqueued {
  runId: number;
  /** False if the run existed before: an unfinished run with the key, or an earlier run whose `uniqueFor` has not passed. */
  created: boolean;
  /** The id of the waiting run with the same key, which ended as skipped because this run replaced it. */
  replaced?: number | undefined;
  /** True if the run with the key has already started, and one more run with the values of this enqueue follows its end. */
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
  /** The time since when the run has waited only for a worker, if later than `dueMs`: see handling/lateness.ts. */
  readyMs?: number | null;
  createdMs: number;
  claimedMs: number | null;
  startedMs: number | null;
  endedMs: number | null;
  attempt: number;
  fence: number | null;
  node: string | null;
  /** The release of the process `node` (see task/release.ts); absent or null if it has none. */
  release?: string | null;
  /** The node that the run is addressed to, until a worker claims it. */
  addressee?: string | null;
  limitKey?: string | null;
  shard?: [index: number, total: number] | null;
  overrides?: Overrides | null;
  expiresMs?: number | null;
  /** null if the run has no labels. */
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
  /** The fence of the writer's claim, for a store that must check whether the writer has the run. */
  fence?: number;
  attempt: number;
  atMs: number;
  level: "debug" | "info" | "warn" | "error";
  message: string;
  fields: Json;
}

/** Conditions for lists of runs, in addition to task and state. */
export interface RunMatch {
  /** Only runs of tasks in this group. */
  group?: string;
  /** A pattern for the name of the run's task: `*` matches any text, `?` one character. */
  matching?: string;
  /** Only runs of tasks in one of these namespaces. */
  namespaces?: readonly string[];
  /** Only permitted together with a task, because a key is unique only among the unfinished runs of a task. */
  key?: string;
  source?: RunSource;
  /** Only runs that have all of these labels. */
  labels?: RunLabels;
}

export interface RunFilter extends RunMatch {
  task?: string;
  states?: (LiveState | Outcome)[];
  /** Only ended runs that ended, and live runs that are due, at or after this time. */
  sinceMs?: number;
  limit: number;
}
