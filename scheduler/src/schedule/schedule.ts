/**
 * Defines when a task is due: by a cron in a zone, an interval of elapsed time or of the calendar, a recurrence rule, once, or
 * only by hand. A `ScheduleSpec` is plain JSON; specs are stored and compared in this form. A `Schedule` is a compiled spec;
 * equal specs share one instance, which is garbage-collected when unused. All times are epoch milliseconds.
 */

import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { mix } from "../base/random.ts";
import {
  BoundedSchedule,
  type BoundOptions,
  type Bounds,
  boundNames,
  boundsIn,
  boundsKey,
  boundsOf,
  givenBounds,
  lastOf,
  mostTimes,
  mostTimesOfCron,
  shortIso,
} from "./bounds.ts";
import {
  calendarEvery,
  calendarOptionNames,
  calendarPeriodOf,
  IntervalSchedule,
  type IntervalSpec,
  intervalSpec,
} from "./calendar-interval.ts";
import type { Cron } from "./cron.ts";
import { parseCron, tidyCron } from "./cron-parse.ts";
import {
  givenJitter,
  instant,
  instantOf,
  type Jitter,
  type JitterOptions,
  jitterNames,
  jitterOf,
  jitterOptionNames,
  oneOf,
  only,
  show,
  time,
  tooFar,
  whole,
  wrong,
} from "./given.ts";
import { cronWords, everyWords } from "./in-words.ts";
import { nextAfterDelay, nextAtRate, previousAtRate } from "./interval.ts";
import { type RuleOptions, RuleSchedule, type RuleSpec, ruleSpec } from "./rrule/rrule.ts";
import { endOfTime, type Zone, zoneOf } from "./zone.ts";
import {
  type FoldPolicy,
  foldPolicies,
  type GapPolicy,
  gapPolicies,
  nextInZone,
  previousInZone,
} from "./zoned-cron.ts";

export type { BoundOptions, Bounds } from "./bounds.ts";
export type { RuleDate, RuleOptions } from "./rrule/rrule.ts";
export type { FoldPolicy, GapPolicy } from "./zoned-cron.ts";

export type ScheduleSpec =
  | ({
      type: "cron";
      expression: string;
      /** A name of the IANA time zone database. */
      zone: string;
      /** For a local time that does not exist: "skip": no slot; "shift": a slot that is later by the length of the gap. */
      gap: GapPolicy;
      /** If a local time exists twice: whether the first, the last or both instants have slots. */
      overlap: FoldPolicy;
    } & Jitter &
      Bounds)
  | ({
      type: "every";
      everyMs: number;
      /** rate: slots at anchor + k × period for all integers k. delay: one slot, a period after the end of the last run. */
      mode: "rate" | "delay";
      /** Any slot of a fixed rate; absent: 0 (the epoch). */
      anchorMs?: number;
    } & Jitter &
      Bounds)
  | IntervalSpec
  | RuleSpec
  | { type: "at"; atMs: number }
  | { type: "manual" };

export interface CronOptions extends BoundOptions, JitterOptions {
  /** Default "UTC". */
  zone?: string;
  /** For a local time that does not exist. Default: "skip" if the cron has slots in all 24 hours (elapsed time), else "shift". */
  gap?: GapPolicy;
  /** If a local time exists twice: which instants have slots. Default: "both" if the cron has slots in all 24 hours, else "first". */
  overlap?: FoldPolicy;
}

export interface EveryOptions extends BoundOptions, JitterOptions {
  /** Default "rate". */
  mode?: "rate" | "delay";
  /**
   * Any slot of a fixed rate; slots exist before it too. Default: the epoch. For a period of the calendar: a local date in any day, week,
   * month or year that has slots. Default: the date of `from`, else Monday, 5 January 1970.
   */
  anchor?: Date | number | string;
  /** As in `JitterOptions`, but also not longer than the period. */
  jitter?: Duration;
  /**
   * Days of a calendar period. In a week "MON"; in a month 15, "last", "TUE#2", "FRIL"; in a year "04-15". Default: the anchor's day. This
   * option and those below are only for periods in words, such as "2 weeks" or "3 months".
   */
  on?: number | string | (number | string)[];
  /** Times of day. Default: the time of `from`, else "00:00". */
  at?: string | string[];
  /** Default "UTC". */
  zone?: string;
  /** For a month that lacks the day: "last" (default) uses its last day, "skip" uses no day. */
  monthEnd?: "last" | "skip";
  /** What happens to a slot whose local time does not exist: "shift" (default) delays it by the length of the gap, "skip" leaves it out. */
  gap?: GapPolicy;
  /** If a local time exists twice: whether the slot is at the first instant (default), the last instant or both. */
  overlap?: FoldPolicy;
}

/** @throws CRON_INVALID, CRON_NEVER, SLOT_TOO_FAR, ZONE_UNKNOWN, SCHEDULE_INVALID, DURATION_INVALID */
export function cron(expression: string, options: CronOptions = {}): ScheduleSpec {
  const names = ["zone", "gap", "overlap", ...jitterOptionNames, "from", "until", "times"] as const;
  const { zone, gap, overlap, jitter, jitterBy, ...bounds } = only(options, "cron options", names);
  return validateSchedule({
    type: "cron",
    expression,
    zone,
    gap,
    overlap,
    ...givenJitter({ jitter, jitterBy }),
    ...givenBounds(bounds),
  });
}

/**
 * @param period elapsed time such as "10m" or "14d", or a calendar period in words: "2 weeks", "3 months", "1 year" @throws
 * SCHEDULE_INVALID, SLOT_TOO_FAR, DURATION_INVALID, ZONE_UNKNOWN
 */
export function every(period: Duration, options: EveryOptions = {}): ScheduleSpec {
  const calendarPeriod = calendarPeriodOf(period);
  if (calendarPeriod !== null) return withSlots(calendarEvery(calendarPeriod, options));
  const names = ["mode", "anchor", ...jitterOptionNames, "from", "until", "times"] as const;
  const stranger = calendarOptionNames.find((name) => name in options);
  if (stranger !== undefined)
    throw wrong(
      `${stranger}: does not go with every ${show(period)}, which is elapsed time`,
      'Say a period of the calendar in words: "3 days", "2 weeks", "1 month", "1 year".',
      stranger,
    );
  const { mode, anchor, jitter, jitterBy, ...bounds } = only(options, "every options", names);
  return validateSchedule({
    type: "every",
    everyMs: parseDuration(period, "every"),
    mode,
    anchorMs: anchor === undefined ? undefined : instantOf(anchor, "anchor"),
    ...givenJitter({ jitter, jitterBy }),
    ...givenBounds(bounds),
  });
}

/**
 * Creates the schedule of a recurrence rule (RFC 5545). @param rule "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", or lines with DTSTART, RRULE, RDATE
 * and EXDATE @throws RRULE_INVALID, RRULE_NEVER, ZONE_UNKNOWN, SCHEDULE_INVALID, SLOT_TOO_FAR, DURATION_INVALID
 */
export function rrule(rule: string, options: RuleOptions = {}): ScheduleSpec {
  const own = ["zone", "start", "rdate", "exdate", "gap", "overlap"] as const;
  const names = [...own, ...jitterOptionNames, "from", "until", "times"] as const;
  const { jitter, jitterBy, from, until, times, ...parts } = only(options, "rrule options", names);
  return validateSchedule({
    type: "rrule",
    rule,
    ...parts,
    ...givenJitter({ jitter, jitterBy }),
    ...givenBounds({ from, until, times }),
  });
}

/** @param time a string must be ISO 8601 with an offset or Z @throws SCHEDULE_INVALID, SLOT_TOO_FAR */
export function at(time: Date | number | string): ScheduleSpec {
  return validateSchedule({ type: "at", atMs: instantOf(time, "at") });
}

export const manual: ScheduleSpec = Object.freeze({ type: "manual" });

/**
 * Converts a value from JSON, the store or a file to a valid spec: default policies are filled in, and unknown fields refused. @throws
 * SCHEDULE_INVALID, CRON_INVALID, CRON_NEVER, RRULE_INVALID, RRULE_NEVER, SLOT_TOO_FAR, ZONE_UNKNOWN
 */
export function validateSchedule(value: unknown): ScheduleSpec {
  const type = typeof value === "object" && value !== null ? (value as { type?: unknown }).type : undefined;
  switch (type) {
    case "cron": {
      const spec = only(value, "cron", ["type", "expression", "zone", "gap", "overlap", ...jitterNames, ...boundNames]);
      const parsed = parseCron(spec.expression as string);
      const elapsed = parsed.fields.hours === allHours;
      const zone = zoneOf(spec.zone ?? "UTC").name;
      const gap = oneOf("gap", spec.gap ?? (elapsed ? "skip" : "shift"), gapPolicies);
      const overlap = oneOf("overlap", spec.overlap ?? (elapsed ? "both" : "first"), foldPolicies);
      refuseNever(parsed, spec.expression as string, zone, gap, overlap);
      const expression = tidyCron(spec.expression as string);
      const bounds = boundsOf(spec, mostTimesOfCron);
      return withSlots({ type, expression, zone, gap, overlap, ...jitterOf(spec), ...bounds });
    }
    case "every": {
      const spec = only(value, "every", ["type", "everyMs", "mode", "anchorMs", ...jitterNames, ...boundNames]);
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
      const jitter = jitterOf(spec);
      if ((jitter.jitterMs ?? 0) > everyMs) {
        throw wrong("jitter: is longer than the period", "Slots would overtake each other. Give at most the period.");
      }
      const bounds = boundsOf(spec, mostTimes);
      if (mode === "delay" && Object.keys(bounds).length > 0) {
        throw wrong(
          "from, until, times: a fixed delay has none",
          "Its slots follow from its runs. Use the mode rate, or pause the task when it is to end.",
        );
      }
      return withSlots({ type, everyMs, mode, ...anchor, ...jitter, ...bounds });
    }
    case "interval":
      return withSlots(intervalSpec(value));
    case "rrule":
      return withSlots(ruleSpec(value));
    case "at":
      return { type, atMs: instant("atMs", only(value, "at", ["type", "atMs"]).atMs) };
    case "manual":
      only(value, "manual", ["type"]);
      return manual;
    default:
      throw wrong(
        `schedule: ${show(value)} has no type that is known`,
        'Use cron("0 9 * * *"), every("5m"), rrule("FREQ=DAILY"), at("2030-01-01T00:00:00Z") or manual.',
      );
  }
}

export interface Schedule {
  /** Returns the first slot strictly after `afterMs`; null if there is none. */
  next(afterMs: number): number | null;
  /**
   * Returns the last slot strictly before `beforeMs`; null if there is none since 1970. Returns null for a fixed delay, because its slots
   * depend on runs.
   */
  previous(beforeMs: number): number | null;
  /** Describes the schedule in English, such as "at 00:00 on weekdays, Asia/Shanghai". */
  words(): string;
  /**
   * Returns how a calendar or blackout changes a slot that would be due at `dueMs`. Undefined, or no such method: the slot is not
   * changed.
   */
  judge?(slotMs: number, dueMs: number): Judgement | undefined;
  /** Returns the times of the task's own schedule that a calendar moves to this slot; no such method: only the slot's own time. */
  nominalTimes?(slotMs: number): number[];
}

export interface Judgement {
  dueMs: number;
  /** The reason why the slot is skipped; absent if it runs. */
  skipped?: string;
  /** All slots from this one to before this instant are skipped as well; undefined: later slots must be judged on their own. */
  untilMs?: number;
  /** The reason why the slot runs at another time; absent if its time is unchanged. */
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
    return `once, at ${shortIso(this.#atMs)}`;
  }
}

const never: Schedule = { next: () => null, previous: () => null, words: () => "only when asked" };

const compiled = new Map<string, WeakRef<Schedule>>();
const collected = new FinalizationRegistry<string>((key) => {
  // The key is kept if another schedule has been compiled for the same key in the meantime.
  if (compiled.get(key)?.deref() === undefined) compiled.delete(key);
});

/** @param spec a validated spec, as returned by `validateSchedule` */
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
  const bounds = spec.type === "at" ? {} : boundsIn(spec);
  if (Object.keys(bounds).length === 0) return unbounded(spec);
  const { fromMs: _, untilMs: __, times: ___, ...plain } = spec as ScheduleSpec & Bounds;
  const base = compileSchedule(plain as ScheduleSpec);
  return new BoundedSchedule(base, bounds, lastOf(base, spec.type === "every" ? spec.everyMs : undefined, bounds));
}

function unbounded(spec: Exclude<ScheduleSpec, { type: "manual" }>): Schedule {
  switch (spec.type) {
    case "cron":
      return new CronSchedule(spec);
    case "every":
      return new EverySchedule(spec);
    case "interval":
      return new IntervalSchedule(spec);
    case "rrule":
      return new RuleSchedule(spec);
    case "at":
      return new AtSchedule(spec.atMs);
    default:
      throw unknownKind(spec);
  }
}

/** Returns a key of all fields that determine the slots. Jitter is left out, because it does not change the slots. */
function keyOf(spec: Exclude<ScheduleSpec, { type: "manual" }>): string {
  switch (spec.type) {
    case "cron":
      return `${spec.expression}|${spec.zone}|${spec.gap}|${spec.overlap}${boundsKey(spec)}`;
    case "every":
      return `${spec.everyMs}|${spec.mode}|${spec.anchorMs ?? 0}${boundsKey(spec)}`;
    case "interval":
    case "rrule":
      return JSON.stringify({ ...spec, jitterMs: undefined, jitterBy: undefined });
    case "at":
      return `${spec.atMs}`;
    default:
      throw unknownKind(spec);
  }
}

/**
 * Creates the error for a spec of an unknown kind, which a newer version may have stored. If the spec were treated as another
 * kind, its task might never fire.
 */
const unknownKind = (spec: never): CarillonError =>
  new CarillonError(
    "SCHEDULE_INVALID",
    `this Carillon has no schedule of the kind ${shownValue((spec as ScheduleSpec).type)}`,
    {
      hint: "A newer Carillon may have stored it: upgrade this process.",
    },
  );

/**
 * Returns the next `count` slots, ascending, or fewer if there are no more. A fixed delay has only one next slot, because later
 * slots depend on the ends of runs.
 */
export function nextSlots(spec: ScheduleSpec, afterMs: number, count: number): number[] {
  const schedule = compileSchedule(spec);
  const most = spec.type === "every" && spec.mode === "delay" ? Math.min(count, 1) : count;
  return collect((from) => schedule.next(from), afterMs, most);
}

/** Returns the last `count` slots before `beforeMs`, latest first, or fewer if there are no more. */
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

export const jitterMsOf = (spec: ScheduleSpec): number => ("jitterMs" in spec ? (spec.jitterMs ?? 0) : 0);

/** The zone of the schedule's local times; null if the schedule has no zone, such as an interval of elapsed time. */
export const zoneNameOf = (spec: ScheduleSpec): string | null => ("zone" in spec ? spec.zone : null);

/**
 * Returns the slot plus its jitter: a whole number of ms from 0 to `jitterMs`, computed only from the arguments. With `jitterBy: "task"` it
 * does not depend on the slot.
 */
export function dueOf(spec: ScheduleSpec, seed: number, slotMs: number): number {
  const jitterMs = jitterMsOf(spec);
  if (jitterMs === 0) return slotMs;
  const ofMs = "jitterBy" in spec && spec.jitterBy === "task" ? 0 : slotMs;
  const chance = mix(mix(seed, ofMs), Math.floor(ofMs / 2 ** 32)) / 2 ** 32;
  return slotMs + Math.floor(chance * (jitterMs + 1));
}

const allHours = 2 ** 24 - 1;

/** The first year that is searched for slots. It is a constant instead of the current year, so that all nodes decide alike. */
const firstToCome = 2026;

/**
 * Refuses a cron whose slots all are at local times that do not exist and that `gap: "skip"` leaves out. Only years from `firstToCome` on
 * are searched, unless all years of the cron are earlier, because gaps by former rules of the zone do not matter.
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

/** @throws SCHEDULE_INVALID if no slot is within the bounds */
function withSlots<Spec extends ScheduleSpec & Bounds>(spec: Spec): Spec {
  if (spec.untilMs === undefined || compileSchedule(spec).next((spec.fromMs ?? 0) - 1) !== null) return spec;
  throw wrong(
    spec.fromMs === undefined
      ? `until: there is no slot up to ${shortIso(spec.untilMs)}`
      : `from, until: there is no slot from ${shortIso(spec.fromMs)} until ${shortIso(spec.untilMs)}`,
    "Give a later until.",
  );
}
