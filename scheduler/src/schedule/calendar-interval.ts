/**
 * The schedule kind `interval`: every n days, weeks, months or years of the calendar, on certain days of that period and at certain times
 * of day. Periods are counted from the period that contains the anchor, forwards and backwards, so all nodes compute the same slots without
 * storing a count.
 */
import { limits } from "../base/limits.ts";
import { type Bounds, boundNames, boundsOf, givenBounds, mostTimesOfCron } from "./bounds.ts";
import {
  givenJitter,
  instantOf,
  type Jitter,
  jitterNames,
  jitterOf,
  jitterOptionNames,
  oneOf,
  only,
  show,
  time,
  wrong,
} from "./given.ts";
import { clock, list, monthNames, nth, ordinals, weekdayNames } from "./in-words.ts";
import {
  clockText,
  dayMs,
  dayOf,
  dayOfDate,
  dayText,
  type LocalTimes,
  sortedUnique,
  weekdayOf,
} from "./local-times.ts";
import { PeriodicTimes, type PeriodUnit } from "./periodic-times.ts";
import { type Zone, zoneOf } from "./zone.ts";
import {
  type FoldPolicy,
  foldPolicies,
  type GapPolicy,
  gapPolicies,
  nextInZone,
  previousInZone,
} from "./zoned-cron.ts";

const periodUnits = ["day", "week", "month", "year"] as const;
const monthEnds = ["last", "skip"] as const;

export type IntervalSpec = {
  type: "interval";
  count: number;
  unit: PeriodUnit;
  /**
   * The days of a period; absent if the period is a day. For a week: "MON". For a month: 1 to 31, "last", "TUE#2" (second Tuesday), "FRIL"
   * (last Friday). For a year: "02-29".
   */
  on?: (number | string)[];
  /** Times of day, such as "09:00". */
  at: string[];
  zone: string;
  /** A local date. The period that contains this date has slots. */
  anchor: string;
  /** For a month that lacks the day: "last" uses the month's last day, "skip" uses no day. Set only if `on` contains such a day. */
  monthEnd?: (typeof monthEnds)[number];
  gap: GapPolicy;
  overlap: FoldPolicy;
} & Jitter &
  Bounds;

export const calendarOptionNames = ["on", "at", "zone", "monthEnd", "gap", "overlap"] as const;

const names = ["type", "count", "unit", "anchor", ...jitterNames, ...calendarOptionNames, ...boundNames] as const;
const mostCount = 10_000;
const mostAt = 100;
const weekdayCodes = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"] as const;

/** The anchor of a schedule with neither `anchor` nor `from`: Monday, 5 January 1970. */
const usualAnchor = "1970-01-05";

const calendarPeriod = /^\s*(\d{1,5})?\s*(day|week|month|quarter|year)s?\s*$/i;

/** Parses a period such as "2 weeks" into count and unit; returns null for other texts, such as "14d", which is elapsed time. */
export function calendarPeriodOf(text: unknown): { count: number; unit: PeriodUnit } | null {
  const [, count = "1", unit] = (typeof text === "string" && calendarPeriod.exec(text)) || [];
  if (unit === undefined) return null;
  const name = unit.toLowerCase();
  return name === "quarter"
    ? { count: Number(count) * 3, unit: "month" }
    : { count: Number(count), unit: name as PeriodUnit };
}

/**
 * Makes a spec of the kind `interval` from the options of `every`.
 * @param options unvalidated
 * @throws SCHEDULE_INVALID, ZONE_UNKNOWN, SLOT_TOO_FAR, DURATION_INVALID
 */
export function calendarEvery(period: { count: number; unit: PeriodUnit }, options: unknown): IntervalSpec {
  const own = [...calendarOptionNames, "anchor", "mode", ...jitterOptionNames, "from", "until", "times"] as const;
  const { mode, anchor, jitter, jitterBy, from, until, times, ...parts } = only(options, "every options", own);
  if (mode !== undefined && mode !== "rate")
    throw wrong(
      `mode: ${show(mode)} does not go with a period of the calendar`,
      'Its slots lie on days. For a pause after each run give elapsed time, such as "14d".',
      "mode",
    );
  const isDate = anchor === undefined || (typeof anchor === "string" && !anchor.includes(":"));
  return intervalSpec({
    type: "interval",
    ...period,
    ...parts,
    anchor: isDate ? anchor : dateOfInstant(instantOf(anchor, "anchor"), parts.zone),
    ...givenJitter({ jitter, jitterBy }),
    ...givenBounds({ from, until, times }),
  });
}

const dateOfInstant = (ms: number, zone: unknown): string =>
  dayText(Math.floor((ms + zoneOf(zone ?? "UTC").at(ms).offset) / dayMs));

/** Formats a period, such as "2 weeks". */
export const calendarPeriodText = ({ count, unit }: { count: number; unit: PeriodUnit }): string =>
  `${count} ${unit}${count === 1 ? "" : "s"}`;

/** Validates a spec. @throws SCHEDULE_INVALID, ZONE_UNKNOWN, SLOT_TOO_FAR */
export function intervalSpec(value: unknown): IntervalSpec {
  const given = only(value, "interval", names);
  const unit = oneOf("unit", given.unit, periodUnits);
  const { count } = given;
  if (!Number.isInteger(count) || (count as number) < 1 || (count as number) > mostCount)
    throw wrong(`every: ${show(count)} ${unit}s`, `Give a whole number from 1 to ${mostCount}.`, "every");
  const zone = zoneOf(given.zone ?? "UTC");
  const bounds = boundsOf(given, mostTimesOfCron);
  const from = bounds.fromMs === undefined ? undefined : bounds.fromMs + zone.at(bounds.fromMs).offset;
  const isAnchored = given.anchor !== undefined || from !== undefined;
  const anchorDay = anchorOf(given.anchor ?? usualAnchorOf(from));
  const on = daysGiven(unit, given.on, isAnchored ? anchorDay : null);
  const mayLack = unit === "year" ? on?.includes("02-29") : on?.some((day) => typeof day === "number" && day > 28);
  if (given.monthEnd !== undefined && !mayLack)
    throw wrong(
      "monthEnd: every month has the days that on names",
      "It is about the days 29 to 31, and of a year about 29 February: leave it out.",
      "monthEnd",
    );
  const monthEnd = mayLack ? { monthEnd: oneOf("monthEnd", given.monthEnd ?? "last", monthEnds) } : {};
  const spec: IntervalSpec = {
    type: "interval",
    count: count as number,
    unit,
    ...(on === null ? {} : { on }),
    at: timesGiven(given.at ?? usualAtOf(from)),
    zone: zone.name,
    anchor: dayText(anchorDay),
    ...monthEnd,
    gap: oneOf("gap", given.gap ?? "shift", gapPolicies),
    overlap: oneOf("overlap", given.overlap ?? "first", foldPolicies),
    ...jitterOf(given),
    ...bounds,
  };
  if (new IntervalSchedule(spec).next(-1) === null)
    throw wrong(
      `on: there is no such day from 1970 to ${limits.lastYear}`,
      "The periods that count lack it: give another anchor.",
      "on",
    );
  return spec;
}

/** Returns the default anchor. @param from the schedule's start as a local time, in ms */
const usualAnchorOf = (from: number | undefined): string =>
  from === undefined ? usualAnchor : dayText(Math.floor(from / dayMs));

/** Returns the default time of day. @param from the schedule's start as a local time, in ms */
const usualAtOf = (from: number | undefined): string =>
  from === undefined ? "00:00" : clockText(Math.floor((((from % dayMs) + dayMs) % dayMs) / 1000));

const listOf = (given: unknown): unknown[] => (Array.isArray(given) ? given : [given]);

function anchorOf(given: unknown): number {
  const found = typeof given === "string" ? /^(\d{4})-(\d\d)-(\d\d)$/.exec(given) : null;
  const [year, month, date] = [1, 2, 3].map((at) => Number(found?.[at])) as [number, number, number];
  const day = found === null ? null : dayOfDate(year, month, date);
  if (day === null)
    throw wrong(
      `anchor: ${show(given)} is not a date`,
      'Give a local date such as "2026-03-16": any day of a week, month or year that has slots.',
      "anchor",
    );
  return day;
}

function timesGiven(given: unknown): string[] {
  const times = listOf(given);
  if (times.length === 0 || times.length > mostAt)
    throw wrong(`at: has ${times.length} times`, `Give 1 to ${mostAt} times of day, such as "09:00".`, "at");
  return sortedUnique(times.map(secondOf)).map(clockText);
}

function secondOf(given: unknown): number {
  const found = typeof given === "string" ? /^(\d{1,2}):(\d\d)(?::(\d\d))?$/.exec(given.trim()) : null;
  const [hour, minute, second] = [1, 2, 3].map((at) => Number(found?.[at] ?? 0)) as [number, number, number];
  if (found === null || hour > 23 || minute > 59 || second > 59)
    throw wrong(`at: ${show(given)} is not a time of day`, 'Give one such as "09:00" or "17:30:15".', "at");
  return (hour * 60 + minute) * 60 + second;
}

const onHints: { [unit in PeriodUnit]: string } = {
  day: "Leave it out: a day has no days.",
  week: 'Give days of the week such as "MON" or ["TUE", "FRI"].',
  month: 'Give days such as 15, "last", "TUE#2" (the second Tuesday) or "FRIL" (the last Friday).',
  year: 'Give a date such as "04-15". For days of the week say "12 months", with an anchor in that month.',
};

/**
 * Validates the days of a period.
 * @param anchorDay the day number of the anchor, whose day is used if no day is given; null if there is no anchor
 */
function daysGiven(unit: PeriodUnit, given: unknown, anchorDay: number | null): (number | string)[] | null {
  if (unit === "day") {
    if (given === undefined) return null;
    throw wrong("on: does not go with days", onHints.day, "on");
  }
  if (given === undefined && anchorDay === null)
    throw wrong(
      `on: which day of the ${unit} is not said`,
      `${onHints[unit]} Or give from, whose day it is then.`,
      "on",
    );
  const days = listOf(given === undefined ? dayOfAnchor(unit, anchorDay as number) : given).map((day) => {
    const known = dayGiven(unit, day);
    if (known === null) throw wrong(`on: ${show(day)} is not a day of a ${unit}`, onHints[unit], "on");
    return known;
  });
  if (days.length === 0) throw wrong("on: has no days", onHints[unit], "on");
  return [...new Set(days)].sort((a, b) => orderOf(a) - orderOf(b) || String(a).localeCompare(String(b)));
}

function dayOfAnchor(unit: PeriodUnit, day: number): number | string {
  if (unit === "week") return weekdayCodes[weekdayOf(day)] as string;
  return unit === "month" ? new Date(day * dayMs).getUTCDate() : dayText(day).slice(5);
}

/** Returns the sort key of a day: numbers first, then "last" and dates, then weekdays from Monday. */
function orderOf(day: number | string): number {
  if (typeof day === "number") return day;
  const weekday = (weekdayCodes as readonly string[]).indexOf(day.slice(0, 3));
  return weekday < 0 ? 50 : 100 + weekday;
}

function dayGiven(unit: PeriodUnit, given: unknown): number | string | null {
  if (unit === "month" && /^\d{1,2}$/.test(String(given))) {
    const day = Number(given);
    return day >= 1 && day <= 31 ? day : null;
  }
  if (typeof given !== "string") return null;
  const text = given.trim();
  if (unit === "year") {
    const [, month, date] = /^(\d\d)-(\d\d)$/.exec(text) ?? [];
    return month !== undefined && dayOfDate(2000, Number(month), Number(date)) !== null ? text : null;
  }
  if (unit === "month" && /^(?:last|L)$/i.test(text)) return "last";
  const [, name = "", mark = ""] = /^([a-z]+?)(#[1-5]|L)?$/i.exec(text) ?? [];
  const code = weekdayCodes.find((one) => new RegExp(`^${one}`, "i").test(name) && isWeekdayName(name));
  if (code === undefined || (unit === "week") !== (mark === "")) return null;
  return `${code}${mark.toUpperCase()}`;
}

const isWeekdayName = (name: string): boolean =>
  weekdayNames.some((one) => [one, one.slice(0, 3)].some((known) => known.toLowerCase() === name.toLowerCase()));

function intervalTimes({ count, unit, on = [], at, anchor, monthEnd }: IntervalSpec): LocalTimes {
  const daysOf = (first: number, end: number): number[] => {
    if (unit === "day") return [first];
    const days = on.map((day) => dayIn(unit, day, first, end, monthEnd === "last"));
    return sortedUnique(days.filter((day) => day !== null));
  };
  return new PeriodicTimes({ unit, count, anchorDay: anchorOf(anchor), weekStart: 0 }, daysOf, at.map(secondOf));
}

/**
 * Returns the day number of a day in a period; null if the period lacks the day.
 * @param first the first day of the period
 * @param end the day after the period's last day
 * @param clamps true: the last day of the month is returned for a day that the month lacks
 */
function dayIn(unit: PeriodUnit, on: number | string, first: number, end: number, clamps: boolean): number | null {
  if (unit === "year") {
    const text = String(on);
    const [year, month, date] = [
      new Date(first * dayMs).getUTCFullYear(),
      Number(text.slice(0, 2)),
      Number(text.slice(3)),
    ];
    return dayOfDate(year, month, date) ?? (clamps ? dayOf(year, month, 1) - 1 : null);
  }
  if (typeof on === "number") return first + on <= end ? first + on - 1 : clamps ? end - 1 : null;
  if (on === "last") return end - 1;
  const weekday = (weekdayCodes as readonly string[]).indexOf(on.slice(0, 3));
  if (on.endsWith("L")) return end - 1 - ((weekdayOf(end - 1) - weekday + 7) % 7);
  const day = first + ((weekday - weekdayOf(first) + 7) % 7) + 7 * (Number(on[4] ?? 1) - 1);
  return day < end ? day : null;
}

export class IntervalSchedule {
  readonly #spec: IntervalSpec;
  readonly #zone: Zone;
  readonly #times: LocalTimes;
  /** @param spec a validated spec, as returned by `intervalSpec` */
  constructor(spec: IntervalSpec) {
    this.#spec = spec;
    this.#zone = zoneOf(spec.zone);
    this.#times = intervalTimes(spec);
  }
  next(afterMs: number): number | null {
    return nextInZone(this.#times, this.#zone, this.#spec.gap, this.#spec.overlap, time(afterMs));
  }
  previous(beforeMs: number): number | null {
    return previousInZone(this.#times, this.#zone, this.#spec.gap, this.#spec.overlap, time(beforeMs));
  }
  words(): string {
    return intervalWords(this.#spec);
  }
}

/** Describes a spec, for example "every 2 weeks on Mondays at 09:00, Europe/Berlin, counted from 2026-03-16". */
function intervalWords({ count, unit, on = [], at, zone, anchor, monthEnd }: IntervalSpec): string {
  const often = count === 1 ? `every ${unit}` : `every ${count} ${unit}s`;
  const days = on.length === 0 ? "" : ` on ${list(on.map((day) => dayWords(unit, day)))}`;
  const skips = monthEnd === "skip" ? [`not in a ${unit} that lacks the day`] : [];
  const counted = count === 1 ? [] : [`counted from ${anchor}`];
  const times = at.map((text) => clock(Number(text.slice(0, 2)), Number(text.slice(3, 5)), Number(text.slice(6))));
  return [`${often}${days} at ${list(times)}`, ...skips, zone, ...counted].join(", ");
}

function dayWords(unit: PeriodUnit, on: number | string): string {
  if (typeof on === "number") return `the ${nth(on)}`;
  if (on === "last") return "the last day";
  if (unit === "year") return `${Number(on.slice(3))} ${monthNames[Number(on.slice(0, 2)) - 1]}`;
  const name = weekdayNames[((weekdayCodes as readonly string[]).indexOf(on.slice(0, 3)) + 1) % 7] as string;
  if (unit === "week") return `${name}s`;
  return `the ${on.endsWith("L") ? "last" : ordinals[Number(on[4]) - 1]} ${name}`;
}
