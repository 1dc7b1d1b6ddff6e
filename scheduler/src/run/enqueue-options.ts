import { type Duration, formatDuration, parseDuration } from "../base/duration.ts";
import { CarillonError, isCarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { checkNames } from "../base/nearest.ts";
import { endOfTime } from "../schedule/zone.ts";
import type { Kind } from "../task/kinds/kinds.ts";
import { type RunLabels, runLabelsKind } from "../task/kinds/run-labels.ts";
import { durabilities } from "../task/kinds/storage.ts";
import { type TaskDefinition, type TaskOptions, taskOptions } from "../task/options.ts";
import { type KeyOverTime, keyOverTime } from "./keys/key-over-time.ts";
import { clientOf, type Transaction } from "./transaction.ts";

export const ifKeyTakens = ["keep", "replace", "again"] as const;
export type IfKeyTaken = (typeof ifKeyTakens)[number];

export type EnqueueDurability = (typeof durabilities)[number];

export interface EnqueueOptions extends RunPolicies, KeyOverTime {
  /** The run is due after this time from now. */
  in?: Duration;
  /** The time at which the run is due, as a Date or epoch milliseconds. */
  at?: Date | number;
  /** A key that at most one unfinished run of a task can have. By default, enqueueing with a key in use returns the run that has it. */
  key?: string;
  /**
   * What happens if an unfinished run has the key. "keep", the default, leaves that run unchanged. "replace" replaces that run if
   * it still waits for its first attempt; the replaced run ends as skipped. "again" does the same; if that run has started, one
   * more run is created after its end, with the values of the latest enqueue with "again".
   */
  ifKeyTaken?: IfKeyTaken;
  /**
   * The key by which `limit.perKey`, rates per key and `route: { hash: "key" }` group runs. Default: `key`. Any number of runs may have it.
   */
  limitKey?: string;
  /** 0 to 9; runs with a higher number are claimed first. Default: the task's priority. */
  priority?: number;
  /** The run ends as skipped if it has not started this long after its due time. */
  expiresIn?: Duration;
  /** The run ends as skipped if it has not started at this time. */
  expiresAt?: Date | number;
  /**
   * Labels by which lists of runs can be filtered, such as { customer: "42" }. They are added to the task's `runLabels`. The task option
   * `labels` is unrelated: it selects workers.
   */
  labels?: Record<string, string>;
  /**
   * "relaxed": the call resolves before the run is on the disk of the store's server. If that server crashes within the next moments and
   * this process does not outlive it, the run is lost: see docs/tasks/durability.md. Default: the task's `durability`.
   */
  durability?: EnqueueDurability;
  /**
   * Enqueues as a part of the caller's own transaction on the store's database: a pg client that has begun one, or a transaction of
   * Drizzle, Kysely, Knex, TypeORM, MikroORM, Prisma or postgres.js.
   */
  tx?: Transaction;
  /**
   * The time to wait for the store; default 30 s. After it the call rejects with ENQUEUE_TIMEOUT, although the run may still be created.
   */
  timeout?: Duration;
  /** If this signal aborts, the call rejects at once with the signal's reason, although the run may still be created. */
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
  "durability",
  "tx",
  "timeout",
  "signal",
];

/** @throws OPTION_INVALID */
export function checkEnqueueOptions(options: EnqueueOptions): void {
  checkNames("enqueue", options, names);
  const { in: delay, at, key, ifKeyTaken, limitKey, priority, durability, tx, timeout, signal } = options;
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
  if (durability !== undefined && !durabilities.some((one) => one === durability))
    throw optionInvalid(`durability cannot be ${shownValue(durability)}`, `Give one of ${durabilities.join(", ")}.`);
  if (tx !== undefined) clientOf("tx", tx);
  if (tx !== undefined && durability !== undefined)
    throw optionInvalid("give `durability` or `tx`, not both", "The commit of your own transaction decides.");
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

/** Returns when the run is due, in epoch milliseconds. @throws OPTION_INVALID, DURATION_INVALID */
export function dueOfEnqueue({ in: delay, at }: EnqueueOptions, nowMs: number): number {
  if (delay !== undefined) return within("in", delay, nowMs + parseDuration(delay, "in", 0));
  return at === undefined ? Math.floor(nowMs) : timeOf("at", at);
}

/** Returns when the run expires, in epoch milliseconds; null if it does not. @throws OPTION_INVALID, DURATION_INVALID */
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

/**
 * Checks that a time is neither before 1970 nor after the last year that Carillon supports, and rounds it down to whole ms.
 * @throws OPTION_INVALID
 */
function within(option: string, given: unknown, dueMs: number): number {
  if (dueMs >= 0 && dueMs < endOfTime) return Math.floor(dueMs);
  throw optionInvalid(
    `${option}: ${shownValue(given)} lies ${dueMs < 0 ? "before 1970" : `beyond the year ${limits.lastYear}`}`,
    "Times are epoch milliseconds; was another unit given?",
  );
}

const optionInvalid = (what: string, hint = "") => new CarillonError("OPTION_INVALID", what, { hint });

/** Policies of a single run that replace the policies of its task. */
export type Overrides = Partial<Pick<TaskDefinition, "retry" | "timeoutMs">>;

/** Options of an enqueue that replace the task's policies for its run. */
export interface RunPolicies {
  /** The total number of attempts, or a whole retry policy. Default: the task's. */
  retry?: TaskOptions["retry"];
  /** The time after which an attempt of this run is stopped; null: no limit. Default: the task's. */
  runTimeout?: Duration | null;
}

/** @returns null if the options replace none of the task's policies @throws OPTION_INVALID, DURATION_INVALID */
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

/** Returns a task's definition with the overrides of one run applied. */
export const definitionFor = (definition: TaskDefinition, overrides: Overrides | null | undefined): TaskDefinition =>
  overrides ? { ...definition, ...overrides } : definition;

/** Converts overrides back to the options of an enqueue. */
export const writtenOverrides = ({ retry, timeoutMs }: Overrides) => ({
  ...(retry === undefined ? {} : { retry: taskOptions.retry.kind.write(retry) }),
  ...(timeoutMs === undefined ? {} : { runTimeout: timeoutMs === null ? null : formatDuration(timeoutMs) }),
});

/** @returns null if the options have no labels @throws OPTION_INVALID */
export function labelsOf({ labels }: Pick<EnqueueOptions, "labels">): RunLabels | null {
  if (labels === undefined) return null;
  const kept = read("labels", runLabelsKind, labels);
  return Object.keys(kept).length === 0 ? null : kept;
}

/** Validates the options and converts them to fields of an enqueue write. @throws OPTION_INVALID, DURATION_INVALID */
export function readOptions(options: EnqueueOptions, nowMs: number) {
  const dueMs = dueOfEnqueue(options, nowMs);
  return {
    dueMs,
    overrides: overridesOf(options),
    expiresMs: expiryOf(options, dueMs),
    labels: labelsOf(options),
    ...(options.durability === undefined ? {} : { durability: options.durability }),
  };
}

/** Returns the fields of an enqueue write that say what happens if its key is in use. */
export const replacing = (ifKeyTaken: IfKeyTaken | undefined): { replaces?: true; again?: boolean } =>
  ifKeyTaken === "replace" || ifKeyTaken === "again" ? { replaces: true, again: ifKeyTaken === "again" } : {};
