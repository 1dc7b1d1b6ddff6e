/**
 * A bulk operation: one action on everything that matches a filter. Processes execute it in small steps; if one process dies, another
 * continues with the next step. docs/tasks/operations.md shows the state table.
 */

import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import type { RunLabels } from "../task/kinds/run-labels.ts";
import { labelsOf } from "./enqueue-options.ts";
import { type LiveState, liveStates, type Outcome, outcomes } from "./run.ts";
import type { Enqueued } from "./run-record.ts";

export const operationKinds = ["pause", "resume", "cancel", "rerun", "redrive", "dismiss", "backfill"] as const;
export type OperationKind = (typeof operationKinds)[number];

export const operationStates = ["running", "stopping", "done", "stopped", "failed"] as const;
export type OperationState = (typeof operationStates)[number];

export const operationEvents = [
  "step",
  "batch taken",
  "batch done",
  "nothing left",
  "stop",
  "stop amid a batch",
  "break",
  "kill -9",
] as const;
export type OperationEvent = (typeof operationEvents)[number];

const transitions: Partial<Record<OperationState, Partial<Record<OperationEvent, OperationState>>>> = {
  running: {
    step: "running",
    "batch taken": "running",
    "batch done": "running",
    "nothing left": "done",
    stop: "stopped",
    "stop amid a batch": "stopping",
    break: "failed",
    "kill -9": "running",
  },
  stopping: { "batch done": "stopped", break: "failed", "kill -9": "stopping" },
};

/** Returns the state after an event; undefined if the event has no effect in this state. */
export const operationTransition = (state: OperationState, event: OperationEvent): OperationState | undefined =>
  transitions[state]?.[event];

/**
 * Selects the items that an operation acts on. An item must match all given fields. The time limits apply to the due time of a
 * live run and to the end of an ended run.
 */
export interface OperationFilter {
  task?: string;
  /** A pattern for the task's name, in which `*` matches any text and `?` one character. */
  matching?: string;
  group?: string;
  /** The namespaces that the task may be in. */
  namespaces?: string[];
  fingerprint?: string;
  /** Labels that a run must have; for dead letters, the labels of the letter's run. All of them must match. */
  labels?: RunLabels;
  /** For dead letters: selects only the letter of this run. */
  runId?: number;
  states?: (LiveState | Outcome)[];
  sinceMs?: number;
  untilMs?: number;
  /** True selects everything; not permitted together with other fields. */
  all?: boolean;
}

/** The time range of a backfill: slots from `fromMs` to `toMs`, both included. */
export interface BackfillRange {
  fromMs: number;
  toMs: number;
  /** The number of runs that become due per second; null: as fast as they can be created. */
  perSecond: number | null;
  /** True: the backfill begins with the newest slot. */
  reverse: boolean;
  /** True: also creates runs for slots that were recorded as missed or skipped. */
  missed: boolean;
}

export interface OperationRequest {
  kind: OperationKind;
  filter: OperationFilter;
  range?: BackfillRange;
  /** When a pause ends automatically; absent if it lasts until the tasks are resumed. */
  pauseUntilMs?: number;
  author: string;
  reason: string;
}

export interface OperationRecord extends OperationRequest {
  operationId: number;
  state: OperationState;
  /**
   * The number of items: those that matched when the operation began, plus items found later, such as a task that was paused after the
   * count. At the end it equals done + passed + late + failed, unless the operation was stopped or failed.
   */
  total: number;
  done: number;
  /** Items that needed no action, such as a run that had already ended when the operation reached it. */
  passed: number;
  /** For a cancel: runs whose workers were asked to stop them and that have not ended yet. */
  asked: number;
  /** For a cancel: runs that ended with another outcome than cancelled, because the worker was asked too late or could not stop them. */
  late: number;
  failed: number;
  /** The error of the last item that failed, or the error because of which the whole operation failed. */
  error: string | null;
  createdMs: number;
  startedMs: number | null;
  endedMs: number | null;
}

export interface OperationStore {
  /**
   * Returns what a request would act on: the number of items, and the first `show` items as text.
   * @throws FILTER_EMPTY, OPTION_INVALID, TASK_UNKNOWN
   */
  preview(request: OperationRequest, nowMs: number, show: number): Promise<{ total: number; first: string[] }>;
  /**
   * Begins an operation. Can be repeated: there is only one operation per token.
   * @returns the operation's id
   * @throws the errors of `preview`
   */
  begin(request: OperationRequest, token: string, nowMs: number): Promise<number>;
  /**
   * Executes one small step of the given operation, or of the operation that is next in turn. Any number of callers can do this at
   * once, and a step can be repeated: its effect either is committed together with the operation's new position, or is harmless if
   * done twice.
   * @returns the operation whose step was executed, or null with the time of the next step
   */
  step(nowMs: number, operationId?: number): Promise<{ stepped: number | null; nextMs: number | null }>;
  /**
   * Stops an operation.
   * @returns the operation's new state
   * @throws OPERATION_UNKNOWN, OPERATION_STATE
   */
  stop(operationId: number, nowMs: number, by?: Pick<Change, "author" | "reason">): Promise<OperationState>;
  /**
   * Creates a new run for one run that has ended, as the operation `rerun` does for many.
   * @param made an id for the new run, reserved by the caller, so that repeating the call creates only one run
   * @throws RUN_UNKNOWN, RUN_STATE, TASK_UNKNOWN
   */
  rerun(runId: number, change: Change, made?: number): Promise<Enqueued>;
  /** @throws OPERATION_UNKNOWN */
  find(operationId: number): Promise<OperationRecord>;
  /** Returns the newest operations, newest first. */
  list(limit: number): Promise<OperationRecord[]>;
}

const ofTasks: (keyof OperationFilter)[] = ["task", "matching", "group", "namespaces", "states"];
const ofRuns: (keyof OperationFilter)[] = [...ofTasks, "sinceMs", "untilMs", "labels"];
const ofLetters: (keyof OperationFilter)[] = [...ofRuns, "fingerprint", "runId"];
const looksAt: Record<OperationKind, (keyof OperationFilter)[]> = {
  pause: ofTasks,
  resume: ofTasks,
  cancel: ofRuns,
  rerun: ofRuns,
  redrive: ofLetters,
  dismiss: ofLetters,
  backfill: ofTasks,
};
/** The names of filter fields as callers write them, for error messages. */
const filterNames: Record<string, string> = { sinceMs: "since", untilMs: "until", runId: "run" };

/** Validates a request. @throws FILTER_EMPTY, OPTION_INVALID */
export function checkRequest({ kind, filter, range, pauseUntilMs }: OperationRequest, nowMs: number): void {
  const wrong = (message: string, hint = "") => new CarillonError("OPTION_INVALID", `${kind}: ${message}`, { hint });
  const given = Object.entries(filter).filter(([name, value]) => name !== "all" && value !== undefined);
  if (given.length === 0 && filter.all !== true) {
    throw new CarillonError("FILTER_EMPTY", `${kind}: no filter was given, so this would touch everything`, {
      hint: "Say what is meant, such as --task NAME or --since 1d; or --all.",
    });
  }
  // A field that this kind of operation ignores is refused, because the caller would believe that it restricts the operation.
  const idle = given.find(([name]) => !looksAt[kind].includes(name as keyof OperationFilter));
  if (idle)
    throw wrong(`does not go by ${filterNames[idle[0]] ?? idle[0]}`, "Leave it out, and say otherwise what is meant.");
  const { sinceMs, untilMs, states = [] } = filter;
  if (filter.labels && labelsOf(filter) === null)
    throw wrong("labels are none", 'Give some, such as { customer: "42" }, or leave them out.');
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs > untilMs) throw wrong("since lies after until");
  const allowed: readonly string[] = kind === "cancel" ? liveStates : kind === "rerun" ? outcomes : [];
  const state = states.find((one) => !allowed.includes(one));
  if (state !== undefined)
    throw wrong(`does not act on runs that are ${state}`, allowed.length === 0 ? "" : `Give ${allowed.join(", ")}.`);
  if (pauseUntilMs !== undefined && kind !== "pause") throw wrong("has no end", "Only a pause has pauseUntil.");
  if (pauseUntilMs !== undefined && !(pauseUntilMs > nowMs)) throw pauseInPast(pauseUntilMs, "pauseUntil");
  if (kind !== "backfill") return;
  if (filter.task === undefined) throw wrong("takes one task by its name");
  if (!range) throw wrong("has no range of time");
  for (const ms of [range.fromMs, range.toMs])
    if (!Number.isSafeInteger(ms) || ms < 0) throw wrong("a time is no time");
  if (range.fromMs > range.toMs) {
    const [from, to] = [range.fromMs, range.toMs].map((ms) => new Date(ms).toISOString());
    throw wrong(`from ${from} lies after to ${to}`, "Change the two; for the newest first there is reverse.");
  }
  const { perSecond } = range;
  if (perSecond !== null && !(perSecond > 0 && perSecond <= 10_000))
    throw wrong(`the rate cannot be ${shownValue(perSecond)} a second`, "Give more than 0 and at most 10000.");
}

/** @param path the option's name as the caller writes it */
export const pauseInPast = (untilMs: number, path = "until"): CarillonError =>
  new CarillonError("OPTION_INVALID", `${path} ${new Date(untilMs).toISOString()} is no time to come`, {
    path,
    hint: "Give a later time, or none for a pause that lasts until the task is resumed.",
  });

export const operationUnknown = (operationId: number): CarillonError =>
  new CarillonError("OPERATION_UNKNOWN", `there is no operation ${operationId}`, {
    hint: "See `carillon operations list`.",
  });

/** Converts a pattern with * and ? to a pattern for SQL's LIKE. */
export const likeOf = (glob: string): string =>
  glob
    .replace(/[\\%_]/g, "\\$&")
    .replaceAll("*", "%")
    .replaceAll("?", "_");
