import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { meant } from "../base/nearest.ts";
import { endOfTime } from "../schedule/zone.ts";
import { clientOf, type Transaction } from "./transaction.ts";

export interface EnqueueOptions {
  /** Due this long from now. */
  in?: Duration;
  /** Due at this time. */
  at?: Date | number;
  /** At most one unfinished run of a task has a key: enqueueing it again gives that run. */
  key?: string;
  /**
   * If an unfinished run has the key: "keep" it as it is, the default, or "replace" it as long as it waits for its first try. The replaced
   * run ends as skipped.
   */
  ifKeyTaken?: "keep" | "replace";
  /** What `limit.perKey`, a rate by key and `route: { hash: "key" }` go by; default the key. Any number of runs may have it. */
  limitKey?: string;
  /** 0 to 9, higher first; default the task's. */
  priority?: number;
  /**
   * Enqueue as a part of your own transaction on the store's database: a pg client that began one, or a transaction of Drizzle, Kysely,
   * Knex, TypeORM or postgres.js.
   */
  tx?: Transaction;
  /** How long to wait for the store's answer; default 30 s. Then it rejects with ENQUEUE_TIMEOUT, and the run may have been made. */
  timeout?: Duration;
  /** Aborted, it rejects at once with the signal's reason, and the run may have been made. */
  signal?: AbortSignal;
}

const names = ["in", "at", "key", "ifKeyTaken", "limitKey", "priority", "tx", "timeout", "signal"];

/** @throws OPTION_INVALID */
export function checkEnqueueOptions(options: EnqueueOptions): void {
  checkNames("enqueue", options, names);
  const { in: delay, at, key, ifKeyTaken, limitKey, priority, tx, timeout, signal } = options;
  if (delay !== undefined && at !== undefined) throw optionInvalid("give `in` or `at`, not both");
  checkKey("key", key);
  checkIfKeyTaken(ifKeyTaken, key);
  checkKey("limitKey", limitKey);
  if (priority !== undefined && !(Number.isInteger(priority) && priority >= 0 && priority <= 9)) {
    throw optionInvalid(`priority cannot be ${shownValue(priority)}`, "Give 0 to 9.");
  }
  if (tx !== undefined) clientOf("tx", tx);
  if (timeout !== undefined) parseDuration(timeout, "timeout", 1);
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw optionInvalid("signal must be an AbortSignal", "Give the signal of an AbortController.");
}

/** @param path of what has them, as the caller wrote it @throws OPTION_INVALID */
export function checkNames(what: string, options: object, known: readonly string[], path = ""): void {
  const unknown = Object.keys(options).find((option) => !known.includes(option));
  if (unknown === undefined) return;
  throw new CarillonError(
    "OPTION_INVALID",
    `${what} has no option ${JSON.stringify(unknown)}${meant(unknown, [...known])}`,
    { hint: `It has ${known.join(", ")}.`, path: path && `${path}.${unknown}` },
  );
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
  if (ifKeyTaken !== "keep" && ifKeyTaken !== "replace")
    throw optionInvalid(`ifKeyTaken cannot be ${shownValue(ifKeyTaken)}`, 'Give "keep" or "replace".');
  if (key === undefined) throw optionInvalid("ifKeyTaken needs a key", "Give `key` too.");
}

/** Epoch milliseconds. @throws OPTION_INVALID, DURATION_INVALID */
export function dueOfEnqueue({ in: delay, at }: EnqueueOptions, nowMs: number): number {
  if (delay !== undefined) return within("in", delay, nowMs + parseDuration(delay, "in", 0));
  if (at === undefined) return Math.floor(nowMs);
  const ms = at instanceof Date ? at.getTime() : at;
  if (typeof ms !== "number" || Number.isNaN(ms))
    throw optionInvalid(`at: ${shownValue(at)} is not a time`, "Give a Date or epoch milliseconds.");
  return within("at", at, ms);
}

/** A time outside these bounds cannot be shown as a date. @throws OPTION_INVALID */
function within(option: string, given: unknown, dueMs: number): number {
  if (dueMs >= 0 && dueMs < endOfTime) return Math.floor(dueMs);
  throw optionInvalid(
    `${option}: ${shownValue(given)} lies ${dueMs < 0 ? "before 1970" : `beyond the year ${limits.lastYear}`}`,
    "Times are epoch milliseconds; was another unit given?",
  );
}

const optionInvalid = (what: string, hint = "") => new CarillonError("OPTION_INVALID", what, { hint });
