/**
 * Validates the parts of a schedule that a program or a file gives. Each error message names the fault; its hint names the correct form.
 */
import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { endOfTime } from "./zone.ts";

/** Refuses NaN: every comparison with NaN is false, so a search would return wrong slots. */
export function time(value: number): number {
  if (Number.isNaN(value)) throw new RangeError("a schedule was asked for the slot next to NaN");
  return value;
}

/** Creates an error with the code SCHEDULE_INVALID. @param path the option's path within the schedule */
export function wrong(message: string, hint = "", path = ""): CarillonError {
  return new CarillonError("SCHEDULE_INVALID", message, { hint, path });
}

export function tooFar(what: string): CarillonError {
  return new CarillonError("SLOT_TOO_FAR", `${what}: lies beyond the year ${limits.lastYear}`, {
    hint: "Times are epoch milliseconds, periods milliseconds; was another unit given?",
  });
}

export function show(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // The value contains itself, or a bigint, so the message names only its type.
    text = typeof value;
  }
  return (text ?? String(value)).slice(0, 80);
}

export function only<K extends string>(value: unknown, what: string, keys: readonly K[]): Partial<Record<K, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw wrong(`${what}: ${show(value)} is not an object`, `Give an object with ${keys.join(", ")}.`);
  }
  for (const key of Object.keys(value)) {
    if (!(keys as readonly string[]).includes(key)) {
      throw wrong(`${what}: ${JSON.stringify(key.slice(0, 40))} is not an option`, `Known are ${keys.join(", ")}.`);
    }
  }
  return value as Partial<Record<K, unknown>>;
}

export function oneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  if ((allowed as readonly unknown[]).includes(value)) return value as T;
  throw wrong(`${name}: ${show(value)} is not allowed`, `Use ${allowed.map((one) => JSON.stringify(one)).join(", ")}.`);
}

export function whole(name: string, value: unknown, min: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min) return value as number;
  throw wrong(`${name}: ${show(value)} is not a whole number of milliseconds from ${min}`);
}

export function instant(name: string, value: unknown): number {
  const ms = whole(name, value, 0);
  if (ms >= endOfTime) throw tooFar(`${name} ${ms}`);
  return ms;
}

/**
 * Each slot is due later by a time from 0 to `jitterMs`; absent: no delay. Without `jitterBy`, each slot has a delay of its own.
 */
export interface Jitter {
  jitterMs?: number;
  /** "task": all slots of a task are delayed by the same time, which is computed from the task, so a periodic task stays periodic. */
  jitterBy?: "task";
}

export interface JitterOptions {
  /** The maximum delay with which a slot becomes due; at most a day. Every node computes the same delay for a slot. */
  jitter?: Duration;
  /** "slot" (default): each slot has a delay of its own. "task": all slots of the task have the same delay. */
  jitterBy?: (typeof jitterKinds)[number];
}

const jitterKinds = ["slot", "task"] as const;
/** The names of the jitter fields, first in options, then in a spec. */
export const jitterOptionNames = ["jitter", "jitterBy"] as const;
export const jitterNames = ["jitterMs", "jitterBy"] as const;

/**
 * Converts the jitter options to the fields of a spec.
 * @param given unvalidated options
 * @throws DURATION_INVALID
 */
export const givenJitter = ({ jitter, jitterBy }: { jitter?: unknown; jitterBy?: unknown }) => ({
  jitterMs: jitter === undefined ? undefined : parseDuration(jitter as Duration, "jitter", 0),
  jitterBy,
});

export function jitterOf({ jitterMs: value, jitterBy: by }: { jitterMs?: unknown; jitterBy?: unknown }): Jitter {
  const whose = oneOf("jitterBy", by ?? jitterKinds[0], jitterKinds);
  if (value === undefined || value === 0) {
    if (whose === "slot") return {};
    throw wrong("jitterBy: goes with jitter alone", 'Say how long the window is: jitter: "2h".', "jitterBy");
  }
  const jitterMs = whole("jitterMs", value, 0);
  if (jitterMs > limits.jitterMs) {
    throw wrong(
      `jitter: ${jitterMs} ms is more than a day`,
      "Spread the slots themselves if you need them further apart.",
    );
  }
  return whose === "task" ? { jitterMs, jitterBy: whose } : { jitterMs };
}

const iso = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d\d):?(\d\d)?)$/i;

export function instantOf(value: unknown, name: string): number {
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw wrong(`${name}: the Date is invalid`);
    return instant(name, value.getTime());
  }
  if (typeof value === "number") return instant(name, value);
  const hint = 'Give a Date, epoch milliseconds, or a text with an offset such as "2030-01-31T09:00:00+01:00".';
  if (typeof value !== "string") throw wrong(`${name}: ${show(value)} is not a time`, hint);
  const found = iso.exec(value.trim());
  if (found === null) throw wrong(`${name}: ${show(value)} is not a time with an offset or Z`, hint);
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((digits) => Number(digits ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const local = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  const exists =
    // The year is compared as well, because JavaScript's Date takes a year below 100 as 19xx.
    local.getUTCFullYear() === year &&
    local.getUTCMonth() === month - 1 &&
    local.getUTCDate() === day &&
    local.getUTCHours() === hour &&
    local.getUTCMinutes() === minute &&
    second < 60;
  const [offsetHours, offsetRest] = [Number(found[9] ?? 0), Number(found[10] ?? 0)];
  const offsetMinutes = offsetHours * 60 + offsetRest;
  if (!exists || offsetRest > 59 || offsetMinutes > 18 * 60)
    throw wrong(`${name}: ${show(value)} is no date and time that exists`, hint);
  const ms = Math.floor(Number(`0.${found[7] ?? 0}`) * 1000);
  return instant(name, local.getTime() + ms - (found[8] === "-" ? -1 : 1) * offsetMinutes * 60_000);
}
