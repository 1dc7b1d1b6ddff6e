import { type Duration, formatDuration, parseDuration } from "../base/duration.ts";
import { CarillonError, isCarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { checkNames } from "../base/nearest.ts";
import { endOfTime } from "../schedule/zone.ts";
import type { Kind } from "../task/kinds/kinds.ts";
import { type RunLabels, runLabelsKind } from "../task/kinds/run-labels.ts";
import { type TaskDefinition, type TaskOptions, taskOptions } from "../task/options.ts";
import { type KeyOverTime, keyOverTime } from "./keys/key-over-time.ts";
import { clientOf, type Transaction } from "./transaction.ts";

export const ifKeyTakens = ["keep", "replace", "again"] as const;
export type IfKeyTaken = (typeof ifKeyTakens)[number];

export interface EnqueueOptions extends RunPolicies, KeyOverTime {
  /** The run is due this long from now. */
  in?: Duration;
  /** The time at which the run is due, as a Date or epoch milliseconds. */
  at?: Date | number;
  /** At most one unfinished run of a task has a given key: enqueueing with a taken key returns that run. */
  key?: string;
  /**
   * What happens if an unfinished run has the key. "keep", the default, leaves that run as it is. "replace" replaces that run while it
   * waits for its first try; it then ends as skipped. "again" does the same, and if that run has begun, makes one more run after its end,
   * with the values of the latest such enqueue.
   */
  ifKeyTaken?: IfKeyTaken;
  /** The key for `limit.perKey`, a rate by key and `route: { hash: "key" }`; default: `key`. Any number of runs may share it. */
  limitKey?: string;
  /** 0 to 9, higher first; default: the task's priority. */
  priority?: number;
  /** If the run has not begun this long after it is due, it ends as skipped. */
  expiresIn?: Duration;
  /** If the run has not begun at this time, it ends as skipped. */
  expiresAt?: Date | number;
  /**
   * Labels by which lists of runs can be filtered, such as { customer: "42" }; added to the task's `runLabels`. A task's `labels` are
   * something else: they select workers.
   */
  labels?: Record<string, string>;
  /**
   * Enqueue as a part of your own transaction on the store's database: a pg client on which you began one, or a transaction of Drizzle,
   * Kysely, Knex, TypeORM, MikroORM, Prisma or postgres.js.
   */
  tx?: Transaction;
  /**
   * How long to wait for the store's answer; default 30 s. After that the call rejects with ENQUEUE_TIMEOUT, and the run may still have
   * been made.
   */
  timeout?: Duration;
  /** When aborted, the call rejects at once with the signal's reason, and the run may still have been made. */
  signal?: AbortSignal;
}

const names = [
  "in",
  "at",
  "key",
  "ifKeyTaken",
  "uniqueFor",
  "maxWait",
  "limitKey",
  "priority",
  "retry",
  "runTimeout",
  "expiresIn",
  "expiresAt",
  "labels",
  "tx",
  "timeout",
  "signal",
];

/** @throws OPTION_INVALID */
export function checkEnqueueOptions(options: EnqueueOptions): void {
  checkNames("enqueue", options, names);
  const { in: delay, at, key, ifKeyTaken, limitKey, priority, tx, timeout, signal } = options;
  if (delay !== undefined && at !== undefined) throw optionInvalid("give `in` or `at`, not both");
  if (options.expiresIn !== undefined && options.expiresAt !== undefined)
    throw optionInvalid("give `expiresIn` or `expiresAt`, not both");
  checkKey("key", key);
  checkIfKeyTaken(ifKeyTaken, key);
  keyOverTime(options);
  checkKey("limitKey", limitKey);
  if (priority !== undefined && !(Number.isInteger(priority) && priority >= 0 && priority <= 9)) {
    throw optionInvalid(`priority cannot be ${shownValue(priority)}`, "Give 0 to 9.");
  }
  if (tx !== undefined) clientOf("tx", tx);
  if (timeout !== undefined) parseDuration(timeout, "timeout", 1);
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw optionInvalid("signal must be an AbortSignal", "Give the signal of an AbortController.");
}

/** @throws OPTION_INVALID */
export function checkKey(what: string, key: unknown): void {
  if (key === undefined) return;
  if (typeof key !== "string" || key === "" || key.length > limits.keyLength || key.includes("\0"))
    throw optionInvalid(`${what} must be a text of 1 to ${limits.keyLength} characters, none of them NUL`);
}

/** @throws OPTION_INVALID */
export function checkIfKeyTaken(ifKeyTaken: unknown, key: string | undefined): void {
  if (ifKeyTaken === undefined) return;
  if (!ifKeyTakens.some((one) => one === ifKeyTaken))
    throw optionInvalid(`ifKeyTaken cannot be ${shownValue(ifKeyTaken)}`, `Give one of ${ifKeyTakens.join(", ")}.`);
  if (key === undefined) throw optionInvalid("ifKeyTaken needs a key", "Give `key` too.");
}

/** When the run is due, in epoch milliseconds. @throws OPTION_INVALID, DURATION_INVALID */
export function dueOfEnqueue({ in: delay, at }: EnqueueOptions, nowMs: number): number {
  if (delay !== undefined) return within("in", delay, nowMs + parseDuration(delay, "in", 0));
  return at === undefined ? Math.floor(nowMs) : timeOf("at", at);
}

/** When the run expires, in epoch milliseconds; null: never. @throws OPTION_INVALID, DURATION_INVALID */
function expiryOf({ expiresIn, expiresAt }: EnqueueOptions, dueMs: number): number | null {
  if (expiresIn !== undefined) return within("expiresIn", expiresIn, dueMs + parseDuration(expiresIn, "expiresIn", 1));
  if (expiresAt === undefined) return null;
  const ms = timeOf("expiresAt", expiresAt);
  if (ms > dueMs) return ms;
  throw optionInvalid(
    "expiresAt is not after the time at which the run is due",
    "Give a later time, or leave the run out.",
  );
}

function timeOf(option: string, given: Date | number): number {
  const ms = given instanceof Date ? given.getTime() : given;
  if (typeof ms !== "number" || Number.isNaN(ms))
    throw optionInvalid(`${option}: ${shownValue(given)} is not a time`, "Give a Date or epoch milliseconds.");
  return within(option, given, ms);
}

/** @throws OPTION_INVALID for a time outside these bounds, which cannot be shown as a date */
function within(option: string, given: unknown, dueMs: number): number {
  if (dueMs >= 0 && dueMs < endOfTime) return Math.floor(dueMs);
  throw optionInvalid(
    `${option}: ${shownValue(given)} lies ${dueMs < 0 ? "before 1970" : `beyond the year ${limits.lastYear}`}`,
    "Times are epoch milliseconds; was another unit given?",
  );
}

const optionInvalid = (what: string, hint = "") => new CarillonError("OPTION_INVALID", what, { hint });

/** The policies of one run, which replace those of its task. */
export type Overrides = Partial<Pick<TaskDefinition, "retry" | "timeoutMs">>;

/** The policies that an enqueue can give to its run alone. */
export interface RunPolicies {
  /** The total number of tries, or the whole policy of tries and pauses; default: the task's. */
  retry?: TaskOptions["retry"];
  /** The time after which an attempt of this run is stopped; null: none. Default the task's. */
  runTimeout?: Duration | null;
}

/**
 * @returns null if all policies are the task's
 * @throws OPTION_INVALID, DURATION_INVALID
 */
export function overridesOf({ retry, runTimeout }: RunPolicies): Overrides | null {
  if (retry === undefined && runTimeout === undefined) return null;
  return {
    ...(retry === undefined ? {} : { retry: read("retry", taskOptions.retry.kind, retry) }),
    ...(runTimeout === undefined
      ? {}
      : { timeoutMs: runTimeout === null ? null : read("runTimeout", taskOptions.timeout.kind, runTimeout) }),
  };
}

function read<Kept>(path: string, kind: Kind<Kept>, given: unknown): Kept {
  try {
    return kind.read(given, { task: undefined, path });
  } catch (error) {
    if (!isCarillonError(error) || error.code !== "TASK_INVALID") throw error;
    throw new CarillonError("OPTION_INVALID", error.message, { hint: error.hint, path: error.path });
  }
}

/** A task's definition with the overrides of one run applied. */
export const definitionFor = (definition: TaskDefinition, overrides: Overrides | null | undefined): TaskDefinition =>
  overrides ? { ...definition, ...overrides } : definition;

/** The overrides in the form in which an enqueue gives them. */
export const writtenOverrides = ({ retry, timeoutMs }: Overrides) => ({
  ...(retry === undefined ? {} : { retry: taskOptions.retry.kind.write(retry) }),
  ...(timeoutMs === undefined ? {} : { runTimeout: timeoutMs === null ? null : formatDuration(timeoutMs) }),
});

/**
 * @returns null if the run has no labels of its own
 * @throws OPTION_INVALID
 */
export function labelsOf({ labels }: Pick<EnqueueOptions, "labels">): RunLabels | null {
  if (labels === undefined) return null;
  const kept = read("labels", runLabelsKind, labels);
  return Object.keys(kept).length === 0 ? null : kept;
}

/** Reads these options into the parts of a write. @throws OPTION_INVALID, DURATION_INVALID */
export function readOptions(options: EnqueueOptions, nowMs: number) {
  const dueMs = dueOfEnqueue(options, nowMs);
  return { dueMs, overrides: overridesOf(options), expiresMs: expiryOf(options, dueMs), labels: labelsOf(options) };
}

/** The parts of a write that say what happens if its key is taken. */
export const replacing = (ifKeyTaken: IfKeyTaken | undefined): { replaces?: true; again?: boolean } =>
  ifKeyTaken === "replace" || ifKeyTaken === "again" ? { replaces: true, again: ifKeyTaken === "again" } : {};
