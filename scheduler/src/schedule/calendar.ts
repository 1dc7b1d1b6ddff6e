/**
 * Business calendars: which days are working days in a zone, and how they change a task's slots. A slot on an excluded day is skipped, or
 * is moved to the next or previous permitted day, at the same local time. These functions are pure: the store has the calendars (see
 * calendar-store.ts), and every node computes the same result. See docs/tasks/calendars.md.
 */
import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { judgedSchedule } from "./judged-schedule.ts";
import type { Judgement, Schedule } from "./schedule.ts";
import { endOfTime, type Zone, zoneOf } from "./zone.ts";

export interface CalendarContent {
  /** The time zone of the calendar's days, and of the local times of moved slots. */
  zone: string;
  /** Weekdays from 0 (Sunday) to 6, ascending. */
  weekend: number[];
  /** Dates such as "2026-12-25", ascending. */
  holidays: string[];
}

export interface Calendar extends CalendarContent {
  name: string;
  version: number;
}

/** A task's rule for a calendar; a part of the task's definition. */
export interface CalendarRule {
  name: string;
  /** The days on which the task runs. "holidays" means all days that are not working days, including weekends. */
  on: "working-days" | "holidays";
  otherwise: "skip" | "next" | "previous";
}

export const dayMs = 86_400_000;
/** The maximum number of days by which a slot is moved. A slot that would be moved further is skipped. */
export const movedDaysMax = 400;
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

export const dayText = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/** Returns the number of days from 1970-01-01 to a date such as 2026-12-25. @throws CALENDAR_INVALID */
export function dayOfText(text: string): number {
  if (typeof text !== "string") throw invalid(`${shownValue(text)} is no date`, "Write dates as 2026-12-25.");
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(ms) || dayText(ms / dayMs) !== text)
    throw invalid(`${JSON.stringify(text.slice(0, 40))} is no date`, "Write dates as 2026-12-25.");
  return ms / dayMs;
}

/** Converts the name of a weekday to a number from 0 (Sunday) to 6: "sat" and "Saturday" give 6. @throws CALENDAR_INVALID */
export function weekdayOf(text: string): number {
  const day = weekdays.indexOf(text.trim().slice(0, 3).toLowerCase() as (typeof weekdays)[number]);
  if (day < 0) throw invalid(`${JSON.stringify(text.slice(0, 40))} is no day of the week`, "Write sun, mon, … sat.");
  return day;
}

/** Validates and sorts a calendar's content. @throws CALENDAR_INVALID, ZONE_UNKNOWN */
export function calendarContent(given: { zone: string; weekend: number[]; holidays: string[] }): CalendarContent {
  const zone = zoneOf(given.zone).name;
  for (const name of ["weekend", "holidays"] as const)
    if (!Array.isArray(given[name])) throw invalid(`${name} is ${shownValue(given[name])}`, "Give a list.");
  if (!Array.from(given.weekend).every((day) => Number.isInteger(day) && day >= 0 && day <= 6))
    throw invalid(`${shownValue(given.weekend)} are no days of the week`, "Give numbers from 0 (Sunday) to 6.");
  const weekend = [...new Set(given.weekend)].sort((a, b) => a - b);
  if (weekend.length === 7) throw invalid("every day is weekend, so no day is worked", "Leave at least one.");
  const days = [...new Set(Array.from(given.holidays, dayOfText))].sort((a, b) => a - b);
  if (days.length > limits.calendarDays)
    throw invalid(`has ${days.length} holidays; the limit is ${limits.calendarDays}`, "Leave out what is long past.");
  return { zone, weekend, holidays: days.map(dayText) };
}

/** The part of a time zone that is needed to convert instants to local times. */
export interface Offsets {
  at(instant: number): { readonly offset: number };
}

/**
 * Returns the instant of a local time in the zone. For a local time that exists twice, it is the first instant; for a skipped local time,
 * it is the instant that is later by the length of the gap.
 */
export function instantAt(zone: Offsets, local: number): number {
  const early = local - zone.at(local - dayMs).offset;
  if (early + zone.at(early).offset === local) return early;
  const late = local - zone.at(local + dayMs).offset;
  return late + zone.at(late).offset === local ? late : early;
}

/**
 * Returns the first instant at which clocks in the zone show this local time or a later local time. For a skipped local time,
 * that is the end of the gap.
 */
export function beginOf(zone: Zone, local: number): number {
  const instant = instantAt(zone, local);
  const span = zone.at(instant);
  return instant + span.offset === local ? instant : span.from;
}

const localOf = (zone: Zone, ms: number) => ms + zone.at(ms).offset;
export const localDayOf = (zone: Zone, ms: number): number => Math.floor(localOf(zone, ms) / dayMs);

/** Returns the instant at which a day begins; `endOfTime` for a day beyond the range of schedules. */
const startOf = (zone: Zone, day: number) => (day * dayMs < endOfTime ? beginOf(zone, day * dayMs) : endOfTime);

/** The days on which a task may run. */
export interface RunDays {
  zone: Zone;
  allows(day: number): boolean;
  /**
   * Returns the first permitted day at or after `day`; with `way` −1, the last permitted day at or before it; ±Infinity if there is
   * none.
   */
  nearest(day: number, way: 1 | -1): number;
}

interface CompiledDays {
  zone: Zone;
  free: Set<number>;
  /** The holidays as numbers of days since 1970-01-01, ascending. */
  holidays: number[];
  weekend: Set<number>;
  /**
   * A cache of the nearest working day of each holiday in both directions, because a calendar may contain years of consecutive holidays.
   */
  worked: Record<1 | -1, Map<number, number>>;
}

const compiled = new WeakMap<Calendar, CompiledDays>();

function compile(calendar: Calendar): CompiledDays {
  let known = compiled.get(calendar);
  if (!known) {
    const holidays = calendar.holidays.map((text) => Date.parse(`${text}T00:00:00Z`) / dayMs).sort((a, b) => a - b);
    const weekend = new Set(calendar.weekend);
    const worked = { 1: new Map<number, number>(), [-1]: new Map<number, number>() };
    known = { zone: zoneOf(calendar.zone), free: new Set(holidays), holidays, weekend, worked };
    compiled.set(calendar, known);
  }
  return known;
}

/** Day 0 is 1 January 1970, a Thursday. */
const weekdayOfDay = (day: number) => (((day + 4) % 7) + 7) % 7;

export function runDays(calendar: Calendar, on: CalendarRule["on"]): RunDays {
  const days = compile(calendar);
  const { zone, free, weekend } = days;
  const works = (day: number) => !free.has(day) && !weekend.has(weekdayOfDay(day));
  if (on === "working-days") return { zone, allows: works, nearest: (day, way) => nearestWorked(days, day, way) };
  return { zone, allows: (day) => !works(day), nearest: (day, way) => nearestFree(days, day, way) };
}

function nearestWorked({ free, weekend, worked }: CompiledDays, day: number, way: 1 | -1): number {
  if (weekend.size === 7) return way * Number.POSITIVE_INFINITY;
  const passed: number[] = [];
  let at = day;
  for (;;) {
    if (free.has(at)) {
      const known = worked[way].get(at);
      if (known !== undefined) {
        at = known;
        break;
      }
      passed.push(at);
    } else if (!weekend.has(weekdayOfDay(at))) break;
    at += way;
  }
  for (const one of passed) worked[way].set(one, at);
  return at;
}

function nearestFree({ holidays, weekend }: CompiledDays, day: number, way: 1 | -1): number {
  // Binary search for the number of holidays before the day; in a search backwards, the day itself is included.
  const before = way === 1 ? day : day + 1;
  let [low, high] = [0, holidays.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((holidays[middle] as number) < before) low = middle + 1;
    else high = middle;
  }
  let nearest = (way === 1 ? holidays[low] : holidays[low - 1]) ?? way * Number.POSITIVE_INFINITY;
  for (let away = 0; away < 7; away++) {
    const weekendDay = day + away * way;
    if (!weekend.has(weekdayOfDay(weekendDay))) continue;
    nearest = way === 1 ? Math.min(nearest, weekendDay) : Math.max(nearest, weekendDay);
    break;
  }
  return nearest;
}

/** Returns a short reason why a task does not run on this day. */
function whyNot(calendar: Calendar, day: number): string {
  const { free, weekend } = compile(calendar);
  const name = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"][weekdayOfDay(day)];
  const what = free.has(day) ? "a holiday" : weekend.has(weekdayOfDay(day)) ? `weekend (${name})` : "a working day";
  return `calendar ${calendar.name}: ${dayText(day)} is ${what}`;
}

/** Returns the start of the next permitted day; undefined if the next clock change leads back into the day before. */
function untilAllowed({ zone, nearest }: RunDays, slotMs: number, day: number): number | undefined {
  const { to, left } = zone.at(slotMs);
  // The local day at the span's end is only computed where clocks go back. A span without a change of offset ends where the zone's search
  // for changes ended, and a look beyond its end would extend that search.
  return left < 0 && localDayOf(zone, to) < day ? undefined : startOf(zone, nearest(day, 1));
}

/** Wraps a schedule so that slots on excluded days are marked as skipped; their times do not change. */
const skipping = (base: Schedule, calendar: Calendar, days: RunDays): Schedule =>
  judgedSchedule(base, (slotMs, dueMs) => {
    const day = localDayOf(days.zone, slotMs);
    if (days.allows(day)) return undefined;
    return { dueMs, skipped: whyNot(calendar, day), untilMs: untilAllowed(days, slotMs, day) };
  });

/**
 * A part of a local day, from `fromMs` to `toMs` (epoch ms), whose slots are all moved by the same time `byMs`. It is the whole
 * day, unless the clocks change on this day or on the day to which the slots are moved.
 */
interface Move {
  day: number;
  fromMs: number;
  toMs: number;
  byMs: number;
}

/** Yields the spans with a constant UTC offset from the day before to the day after a day. */
function* spansAround(zone: Zone, day: number) {
  const end = (day + 2) * dayMs;
  for (let at = (day - 1) * dayMs; at < end; ) {
    const { offset, left, to } = zone.at(at);
    yield { fromMs: at, toMs: Math.min(to, end), offset, left };
    at = to;
  }
}

/**
 * Yields the moves by which the slots of one day get to another day. Moved times are in order within one move, but the times of
 * different moves may overlap.
 */
function* movesOf(zone: Zone, day: number, target: number): Iterable<Move> {
  for (const { fromMs, toMs, offset } of spansAround(zone, day)) {
    const end = Math.min(toMs, (day + 1) * dayMs - offset);
    let at = Math.max(fromMs, day * dayMs - offset);
    for (const there of spansAround(zone, target)) {
      const byMs = day === target ? 0 : (target - day) * dayMs + offset - there.offset;
      // Uses the rule of `instantAt`: local times in a gap use the offset before the gap, and repeated local times use the first pass.
      const last = Math.min(end, there.toMs + Math.max(there.left, 0) - byMs);
      if (at >= last) continue;
      yield { day, fromMs: at, toMs: last, byMs };
      at = last;
    }
  }
}

/** Returns the day to which the slots of a day are moved; the day itself if no permitted day is near enough. */
export function movedTo({ nearest }: RunDays, day: number, way: 1 | -1): number {
  const target = nearest(day, way);
  return Math.abs(target - day) <= movedDaysMax ? target : day;
}

/**
 * A schedule whose slots on excluded days are moved to permitted days. Its slots are at the moved times; a nominal time is a slot's time
 * before the move. Two slots moved to the same instant are one slot. The slots of one day are computed together: its own slots, and the
 * slots of excluded days that are moved to it.
 */
export class MovingSchedule implements Schedule {
  readonly #base: Schedule;
  readonly #calendar: Calendar;
  readonly #days: RunDays;
  /** 1: slots are moved to the next permitted day; −1: to the previous one. */
  readonly #way: 1 | -1;
  /** A cache of the moves to the last queried day, because consecutive slots are mostly on the same day. */
  #held: { target: number; moves: Move[] } | undefined;
  constructor(base: Schedule, calendar: Calendar, days: RunDays, way: 1 | -1) {
    this.#base = base;
    this.#calendar = calendar;
    this.#days = days;
    this.#way = way;
  }

  words(): string {
    return this.#base.words();
  }

  next(afterMs: number): number | null {
    const { zone } = this.#days;
    // The search starts one day earlier: where clocks skip a whole day, the slots of that day are on the next day.
    let start = localDayOf(zone, Math.max(afterMs, 0)) - 1;
    if (this.#way === 1) start = this.#sources(this.#target(start))[0];
    for (;;) {
      const nominal = this.#base.next(startOf(zone, start) - 1);
      if (nominal === null) return null;
      const target = this.#target(localDayOf(zone, nominal));
      const first = this.#firstOn(target, afterMs);
      if (first !== null) return first;
      start = this.#sources(target)[1] + 1;
    }
  }

  previous(beforeMs: number): number | null {
    const { zone } = this.#days;
    let end = localDayOf(zone, Math.max(beforeMs, 0)) + 1;
    if (this.#way === -1) end = this.#sources(this.#target(end))[1];
    for (;;) {
      const nominal = this.#base.previous(startOf(zone, end + 1));
      if (nominal === null) return null;
      const target = this.#target(localDayOf(zone, nominal));
      const last = this.#lastOn(target, beforeMs);
      if (last !== null) return last;
      end = this.#sources(target)[0] - 1;
    }
  }

  judge(slotMs: number, dueMs: number): Judgement | undefined {
    const { zone, allows } = this.#days;
    const day = localDayOf(zone, slotMs);
    if (!allows(day)) {
      const why = `${whyNot(this.#calendar, day)}, and no other day is within ${movedDaysMax} days`;
      return { dueMs, skipped: why, untilMs: untilAllowed(this.#days, slotMs, day) };
    }
    const moved = new Set<number>();
    for (const move of this.#movesAt(slotMs, day)) if (move.day !== day) moved.add(move.day);
    if (moved.size === 0) return undefined;
    return { dueMs, note: `calendar ${this.#calendar.name}: moved from ${[...moved].map(dayText).join(", ")}` };
  }

  nominalTimes(slotMs: number): number[] {
    const moves = [...this.#movesAt(slotMs, localDayOf(this.#days.zone, slotMs))];
    return moves.length === 0 ? [slotMs] : moves.map(({ byMs }) => slotMs - byMs);
  }

  /** Yields the moves that bring a slot of the task's own schedule to this instant. */
  *#movesAt(slotMs: number, day: number): Generator<Move> {
    for (const move of this.#movesTo(day)) {
      const nominal = slotMs - move.byMs;
      if (nominal >= move.fromMs && nominal < move.toMs && this.#base.next(nominal - 1) === nominal) yield move;
    }
  }

  /**
   * Returns nominal times after `nowMs` that were moved to `nowMs` or earlier, so that their slots have already passed, for a new task or
   * calendar.
   */
  passedBy(nowMs: number, most: number): number[] {
    const target = this.#target(localDayOf(this.#days.zone, nowMs));
    const passed: number[] = [];
    if (this.#way === 1 || !this.#days.allows(target)) return [];
    for (const { day, fromMs, toMs, byMs } of this.#movesTo(target)) {
      if (day === target) continue;
      let nominal = this.#base.next(Math.max(nowMs, fromMs - 1));
      while (nominal !== null && nominal < toMs && nominal + byMs <= nowMs && passed.length < most) {
        passed.push(nominal);
        nominal = this.#base.next(nominal);
      }
    }
    return passed;
  }

  /** Returns nominal times up to `nowMs` that were moved to a time after `nowMs`, ascending. */
  putOff(nowMs: number, most: number): number[] {
    if (this.#way === -1) return [];
    const off: number[] = [];
    for (const { fromMs, toMs, byMs } of this.#movesTo(this.#target(localDayOf(this.#days.zone, nowMs)))) {
      let nominal = this.#base.next(Math.max(fromMs - 1, nowMs - byMs));
      while (nominal !== null && nominal < toMs && nominal <= nowMs && off.length < most) {
        off.push(nominal);
        nominal = this.#base.next(nominal);
      }
    }
    return off.sort((a, b) => a - b);
  }

  /** Returns the instant to which a nominal time of the base schedule is moved. */
  placeOf(nominalMs: number): number {
    const day = localDayOf(this.#days.zone, nominalMs);
    for (const { fromMs, toMs, byMs } of movesOf(this.#days.zone, day, this.#target(day)))
      if (fromMs <= nominalMs && nominalMs < toMs) return nominalMs + byMs;
    return nominalMs;
  }

  #target(day: number): number {
    return movedTo(this.#days, day, this.#way);
  }

  /** Returns the first and last day of the days whose slots are moved to this day; the day itself is one of them. */
  #sources(target: number): [number, number] {
    const { allows, nearest } = this.#days;
    if (!allows(target)) return [target, target];
    return this.#way === 1
      ? [Math.max(nearest(target - 1, -1) + 1, target - movedDaysMax), target]
      : [target, Math.min(nearest(target + 1, 1) - 1, target + movedDaysMax)];
  }

  /** Returns all moves to the day. The day's own moves come first, then those of the nearest other days. */
  #movesTo(target: number): readonly Move[] {
    if (this.#held?.target !== target) {
      const [first, last] = this.#sources(target);
      const moves: Move[] = [];
      for (let away = 0; away <= last - first; away++)
        moves.push(...movesOf(this.#days.zone, target - away * this.#way, target));
      this.#held = { target, moves };
    }
    return this.#held.moves;
  }

  /** Returns the first slot after an instant among the slots moved to a day; null if there is none. */
  #firstOn(target: number, afterMs: number): number | null {
    if (startOf(this.#days.zone, target + 2) <= afterMs) return null;
    let first = Number.POSITIVE_INFINITY;
    for (const { fromMs, toMs, byMs } of this.#movesTo(target)) {
      if (toMs + byMs <= afterMs || fromMs + byMs >= first) continue;
      const nominal = this.#base.next(Math.max(fromMs - 1, afterMs - byMs));
      if (nominal !== null && nominal < toMs) first = Math.min(first, nominal + byMs);
    }
    return first === Number.POSITIVE_INFINITY ? null : first;
  }

  /** Returns the last slot before an instant among the slots moved to a day; null if there is none. */
  #lastOn(target: number, beforeMs: number): number | null {
    if (startOf(this.#days.zone, target) >= beforeMs) return null;
    let last = Number.NEGATIVE_INFINITY;
    for (const { fromMs, toMs, byMs } of this.#movesTo(target)) {
      if (fromMs + byMs >= beforeMs || toMs + byMs <= last) continue;
      const nominal = this.#base.previous(Math.min(toMs, beforeMs - byMs));
      if (nominal !== null && nominal >= fromMs) last = Math.max(last, nominal + byMs);
    }
    return last === Number.NEGATIVE_INFINITY ? null : last;
  }
}

/** Returns the task's schedule with a calendar rule applied. */
export function calendarSchedule(base: Schedule, rule: CalendarRule, calendar: Calendar): Schedule {
  const days = runDays(calendar, rule.on);
  if (rule.otherwise === "skip") return skipping(base, calendar, days);
  return new MovingSchedule(base, calendar, days, rule.otherwise === "next" ? 1 : -1);
}

function invalid(what: string, hint: string): CarillonError {
  return new CarillonError("CALENDAR_INVALID", `calendar: ${what}`, { hint });
}
