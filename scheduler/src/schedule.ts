/**
 * When a task is due: a cron in a zone, an interval, one moment, or never by itself.
 *
 * A `ScheduleSpec` is plain JSON, kept in the store and compared as such. A `Schedule` is its compiled form; equal specs
 * share one, and it is collected when nobody holds it. All times are epoch milliseconds.
 */
import type { Cron } from "./cron.ts";
import { parseCron, tidyCron } from "./cron-parse.ts";
import { type Duration, parseDuration } from "./duration.ts";
import { CarillonError } from "./errors.ts";
import { nextAfterDelay, nextAtRate, previousAtRate } from "./interval.ts";
import { limits } from "./limits.ts";
import { mix } from "./random.ts";
import { cronWords, everyWords } from "./words.ts";
import { endOfTime, type Zone, zoneOf } from "./zone.ts";
import { type FoldPolicy, type GapPolicy, nextInZone, previousInZone } from "./zoned-cron.ts";

export type { FoldPolicy, GapPolicy } from "./zoned-cron.ts";

export type ScheduleSpec =
  | {
      type: "cron";
      expression: string;
      /** A name of the IANA time zone database. */
      zone: string;
      /** For a local time that does not exist: no slot, or one later by the gap's length. */
      gap: GapPolicy;
      /** For a local time that exists twice. */
      overlap: FoldPolicy;
      jitterMs?: number;
    }
  | {
      type: "every";
      everyMs: number;
      /** rate: slots at anchor + k × period. delay: one period after the end of the last run. */
      mode: "rate" | "delay";
      /** Any slot of a fixed rate; without it, the epoch. */
      anchorMs?: number;
      jitterMs?: number;
    }
  | { type: "at"; atMs: number }
  | { type: "manual" };

export interface CronOptions {
  /** Default "UTC". */
  zone?: string;
  /** Default: "skip" when the cron covers all 24 hours (it is about elapsed time), else "shift". */
  gap?: GapPolicy;
  /** Default: "both" when the cron covers all 24 hours, else "first". */
  overlap?: FoldPolicy;
  /** Each slot is due up to this much later, by an amount that every node computes alike. */
  jitter?: Duration;
}

export interface EveryOptions {
  /** Default "rate". */
  mode?: "rate" | "delay";
  /** Any one slot of a fixed rate; sets the phase, not a beginning. Default: the epoch. */
  anchor?: Date | number | string;
  /** At most the period. */
  jitter?: Duration;
}

/** @throws CRON_INVALID, CRON_NEVER, SLOT_TOO_FAR, ZONE_UNKNOWN, SCHEDULE_INVALID, DURATION_INVALID */
export function cron(expression: string, options: CronOptions = {}): ScheduleSpec {
  const { zone, gap, overlap, jitter } = only(options, "cron options", ["zone", "gap", "overlap", "jitter"]);
  return validateSchedule({
    type: "cron",
    expression,
    zone,
    gap,
    overlap,
    jitterMs: jitter === undefined ? undefined : parseDuration(jitter as Duration, "jitter", 0),
  });
}

/** @throws SCHEDULE_INVALID, SLOT_TOO_FAR, DURATION_INVALID */
export function every(period: Duration, options: EveryOptions = {}): ScheduleSpec {
  const { mode, anchor, jitter } = only(options, "every options", ["mode", "anchor", "jitter"]);
  return validateSchedule({
    type: "every",
    everyMs: parseDuration(period, "every"),
    mode,
    anchorMs: anchor === undefined ? undefined : instantOf(anchor, "anchor"),
    jitterMs: jitter === undefined ? undefined : parseDuration(jitter as Duration, "jitter", 0),
  });
}

/** @param time a text is ISO 8601 with an offset or Z. @throws SCHEDULE_INVALID, SLOT_TOO_FAR */
export function at(time: Date | number | string): ScheduleSpec {
  return validateSchedule({ type: "at", atMs: instantOf(time, "at") });
}

export const manual: ScheduleSpec = Object.freeze({ type: "manual" });

/**
 * Anything from JSON, the store or a file → a spec with all policies resolved and nothing else in it.
 * @throws SCHEDULE_INVALID, CRON_INVALID, CRON_NEVER, SLOT_TOO_FAR, ZONE_UNKNOWN
 */
export function validateSchedule(value: unknown): ScheduleSpec {
  const type = typeof value === "object" && value !== null ? (value as { type?: unknown }).type : undefined;
  switch (type) {
    case "cron": {
      const spec = only(value, "cron", ["type", "expression", "zone", "gap", "overlap", "jitterMs"]);
      const parsed = parseCron(spec.expression as string);
      const elapsed = parsed.fields.hours === allHours;
      const zone = zoneOf(spec.zone ?? "UTC").name;
      const gap = oneOf("gap", spec.gap ?? (elapsed ? "skip" : "shift"), ["skip", "shift"] as const);
      const overlap = oneOf("overlap", spec.overlap ?? (elapsed ? "both" : "first"), [
        "first",
        "last",
        "both",
      ] as const);
      refuseNever(parsed, spec.expression as string, zone, gap, overlap);
      return { type, expression: tidyCron(spec.expression as string), zone, gap, overlap, ...jitterOf(spec.jitterMs) };
    }
    case "every": {
      const spec = only(value, "every", ["type", "everyMs", "mode", "anchorMs", "jitterMs"]);
      const everyMs = whole("everyMs", spec.everyMs, 1);
      const mode = oneOf("mode", spec.mode ?? "rate", ["rate", "delay"] as const);
      if (mode === "delay" && spec.anchorMs !== undefined) {
        throw wrong(
          "anchor: a fixed delay has none",
          "It counts from the end of the last run. Leave the anchor out, or use the mode rate.",
        );
      }
      const anchor = spec.anchorMs === undefined ? {} : { anchorMs: instant("anchorMs", spec.anchorMs) };
      if (mode === "rate" && everyMs < limits.shortestPeriodMs) {
        throw wrong(
          `every: a period of ${everyMs} ms is too short`,
          `Each slot is accounted for by itself; the shortest period is ${limits.shortestPeriodMs} ms.`,
        );
      }
      if (everyMs >= endOfTime) throw tooFar(`every ${everyMs} ms`);
      const jitter = jitterOf(spec.jitterMs);
      if ((jitter.jitterMs ?? 0) > everyMs) {
        throw wrong("jitter: is longer than the period", "Slots would overtake each other. Give at most the period.");
      }
      return { type, everyMs, mode, ...anchor, ...jitter };
    }
    case "at":
      return { type, atMs: instant("atMs", only(value, "at", ["type", "atMs"]).atMs) };
    case "manual":
      only(value, "manual", ["type"]);
      return manual;
    default:
      throw wrong(
        `schedule: ${show(value)} has no type that is known`,
        'Use cron("0 9 * * *"), every("5m"), at("2030-01-01T00:00:00Z") or manual.',
      );
  }
}

export interface Schedule {
  /** The first slot strictly after, or null: never again. */
  next(afterMs: number): number | null;
  /** The last slot strictly before, or null: none since 1970. A fixed delay has none, its slots depend on runs. */
  previous(beforeMs: number): number | null;
  /** "at 00:00 on weekdays, Asia/Shanghai" */
  words(): string;
  /** What a calendar or a blackout makes of a slot that would be due then; undefined, or without it: it runs then. */
  judge?(slotMs: number, dueMs: number): Judgement | undefined;
}

export interface Judgement {
  dueMs: number;
  /** Why it does not run at all. */
  skipped?: string;
  /** No slot between it and this instant runs either; undefined: nothing is known of those that follow. */
  untilMs?: number;
  /** Why it runs when it does. */
  note?: string;
}

class CronSchedule implements Schedule {
  readonly #cron: Cron;
  readonly #zone: Zone;
  readonly #gap: GapPolicy;
  readonly #overlap: FoldPolicy;
  constructor(spec: ScheduleSpec & { type: "cron" }) {
    this.#cron = parseCron(spec.expression);
    this.#zone = zoneOf(spec.zone);
    this.#gap = spec.gap;
    this.#overlap = spec.overlap;
  }
  next(afterMs: number): number | null {
    return nextInZone(this.#cron, this.#zone, this.#gap, this.#overlap, time(afterMs));
  }
  previous(beforeMs: number): number | null {
    return previousInZone(this.#cron, this.#zone, this.#gap, this.#overlap, time(beforeMs));
  }
  words(): string {
    return cronWords(this.#cron.fields, this.#zone.name);
  }
}

class EverySchedule implements Schedule {
  readonly #spec: ScheduleSpec & { type: "every" };
  constructor(spec: ScheduleSpec & { type: "every" }) {
    this.#spec = spec;
  }
  next(afterMs: number): number | null {
    const { everyMs, mode, anchorMs } = this.#spec;
    return mode === "rate" ? nextAtRate(everyMs, anchorMs ?? 0, time(afterMs)) : nextAfterDelay(everyMs, time(afterMs));
  }
  previous(beforeMs: number): number | null {
    const { everyMs, mode, anchorMs } = this.#spec;
    return mode === "rate" ? previousAtRate(everyMs, anchorMs ?? 0, time(beforeMs)) : null;
  }
  words(): string {
    return everyWords(this.#spec.everyMs, this.#spec.mode);
  }
}

class AtSchedule implements Schedule {
  readonly #atMs: number;
  constructor(atMs: number) {
    this.#atMs = atMs;
  }
  next(afterMs: number): number | null {
    return time(afterMs) < this.#atMs ? this.#atMs : null;
  }
  previous(beforeMs: number): number | null {
    return time(beforeMs) > this.#atMs ? this.#atMs : null;
  }
  words(): string {
    return `once, at ${new Date(this.#atMs).toISOString().replace(".000Z", "Z")}`;
  }
}

const never: Schedule = { next: () => null, previous: () => null, words: () => "only when asked" };

const compiled = new Map<string, WeakRef<Schedule>>();
const collected = new FinalizationRegistry<string>((key) => {
  // Another one may have been compiled under the same key since.
  if (compiled.get(key)?.deref() === undefined) compiled.delete(key);
});

/** @param spec as `validateSchedule` returns it */
export function compileSchedule(spec: ScheduleSpec): Schedule {
  if (spec.type === "manual") return never;
  const key = keyOf(spec);
  let schedule = compiled.get(key)?.deref();
  if (schedule === undefined) {
    schedule = build(spec);
    compiled.set(key, new WeakRef(schedule));
    collected.register(schedule, key);
  }
  return schedule;
}

function build(spec: Exclude<ScheduleSpec, { type: "manual" }>): Schedule {
  if (spec.type === "cron") return new CronSchedule(spec);
  return spec.type === "every" ? new EverySchedule(spec) : new AtSchedule(spec.atMs);
}

/** What decides the slots; jitter does not. */
function keyOf(spec: Exclude<ScheduleSpec, { type: "manual" }>): string {
  switch (spec.type) {
    case "cron":
      return `${spec.expression}|${spec.zone}|${spec.gap}|${spec.overlap}`;
    case "every":
      return `${spec.everyMs}|${spec.mode}|${spec.anchorMs ?? 0}`;
    case "at":
      return `${spec.atMs}`;
  }
}

/** The next `count` slots, ascending; fewer when there are no more, one for a fixed delay: the rest depend on its runs. */
export function nextSlots(spec: ScheduleSpec, afterMs: number, count: number): number[] {
  const schedule = compileSchedule(spec);
  const most = spec.type === "every" && spec.mode === "delay" ? Math.min(count, 1) : count;
  return collect((from) => schedule.next(from), afterMs, most);
}

/** The last `count` slots, latest first. */
export function previousSlots(spec: ScheduleSpec, beforeMs: number, count: number): number[] {
  const schedule = compileSchedule(spec);
  return collect((from) => schedule.previous(from), beforeMs, count);
}

function collect(step: (from: number) => number | null, from: number, count: number): number[] {
  const slots: number[] = [];
  for (let slot = count > 0 ? step(from) : null; slot !== null; slot = slots.length < count ? step(slot) : null) {
    slots.push(slot);
  }
  return slots;
}

export const jitterMsOf = (spec: ScheduleSpec): number =>
  spec.type === "cron" || spec.type === "every" ? (spec.jitterMs ?? 0) : 0;

/** The slot plus its jitter: a whole number of ms in [0, jitterMs], which depends only on the arguments. */
export function dueOf(spec: ScheduleSpec, seed: number, slotMs: number): number {
  const jitterMs = jitterMsOf(spec);
  if (jitterMs === 0) return slotMs;
  const chance = mix(mix(seed, slotMs), Math.floor(slotMs / 2 ** 32)) / 2 ** 32;
  return slotMs + Math.floor(chance * (jitterMs + 1));
}

const allHours = 2 ** 24 - 1;

/** What lies before it is past for every cron. Not the present day: all nodes are to decide alike. */
const firstToCome = 2026;

/**
 * All slots of a cron may lie in gaps that its policy skips: those of the few years that it names, or in each year those of
 * the second Sunday of March. What its zone skipped by rules long past does not help it, unless all its years are past.
 */
function refuseNever(parsed: Cron, text: string, zone: string, gap: GapPolicy, overlap: FoldPolicy): void {
  if (gap !== "skip") return;
  const { years } = parsed.fields;
  const isPast = years !== null && (years.at(-1) as number) < firstToCome;
  const from = isPast ? (years[0] as number) : firstToCome;
  if (nextInZone(parsed, zoneOf(zone), gap, overlap, Date.UTC(from, 0, 1) - 2 * 86_400_000) === null) {
    throw new CarillonError("CRON_NEVER", `cron ${JSON.stringify(text)}: its local times are all skipped in ${zone}`, {
      hint: 'Clocks go forward over them. Use gap: "shift", or another time.',
    });
  }
}

/** NaN would make every comparison false and every search wrong. */
function time(value: number): number {
  if (Number.isNaN(value)) throw new RangeError("a schedule was asked for the slot next to NaN");
  return value;
}

function wrong(message: string, hint = ""): CarillonError {
  return new CarillonError("SCHEDULE_INVALID", message, { hint });
}

function tooFar(what: string): CarillonError {
  return new CarillonError("SLOT_TOO_FAR", `${what}: lies beyond the year ${limits.lastYear}`, {
    hint: "Times are epoch milliseconds, periods milliseconds; was another unit given?",
  });
}

function show(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // Circular or a bigint: its kind is enough for a message.
    text = typeof value;
  }
  return (text ?? String(value)).slice(0, 80);
}

function only<K extends string>(value: unknown, what: string, keys: readonly K[]): Partial<Record<K, unknown>> {
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

function oneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  if ((allowed as readonly unknown[]).includes(value)) return value as T;
  throw wrong(`${name}: ${show(value)} is not allowed`, `Use ${allowed.map((one) => JSON.stringify(one)).join(", ")}.`);
}

function whole(name: string, value: unknown, min: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min) return value as number;
  throw wrong(`${name}: ${show(value)} is not a whole number of milliseconds from ${min}`);
}

function instant(name: string, value: unknown): number {
  const ms = whole(name, value, 0);
  if (ms >= endOfTime) throw tooFar(`${name} ${ms}`);
  return ms;
}

function jitterOf(value: unknown): { jitterMs?: number } {
  if (value === undefined || value === 0) return {};
  const jitterMs = whole("jitterMs", value, 0);
  if (jitterMs > limits.jitterMs) {
    throw wrong(
      `jitter: ${jitterMs} ms is more than a day`,
      "Spread the slots themselves if you need them further apart.",
    );
  }
  return { jitterMs };
}

const iso = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d\d):?(\d\d)?)$/i;

function instantOf(value: unknown, name: string): number {
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
    // A year below 100 is taken for one of the twentieth century.
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
