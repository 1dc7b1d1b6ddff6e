/**
 * Business calendars: which days are worked, in one zone, and what that makes of a task's slots. A slot on a day that the
 * task does not run on is skipped, or moved to the next or the last day before that it does run on, at the same local time.
 * Pure: the store keeps calendars (see calendar-store.ts), every node computes alike. See docs/calendars.md.
 */
import { CarillonError } from "./errors.ts";
import { shownValue } from "./json.ts";
import { judgedSchedule } from "./judged-schedule.ts";
import { limits } from "./limits.ts";
import type { Judgement, Schedule } from "./schedule.ts";
import { type Zone, zoneOf } from "./zone.ts";

export interface CalendarContent {
  /** Its days, and the local times of slots that are moved, are this zone's. */
  zone: string;
  /** 0 (Sunday) to 6; ascending. */
  weekend: number[];
  /** "2026-12-25", ascending. */
  holidays: string[];
}

export interface Calendar extends CalendarContent {
  name: string;
  version: number;
}

/** A task's own rule, part of its definition. */
export interface CalendarRule {
  name: string;
  /** A holiday here is any day that is not worked: weekends too. */
  on: "working-days" | "holidays";
  otherwise: "skip" | "next" | "previous";
}

export const dayMs = 86_400_000;
/** No slot is moved further than this; one that would have to be is skipped. */
export const movedDaysMax = 400;
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

export const dayText = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/** The number of days since 1970-01-01 of a text such as 2026-12-25. @throws CALENDAR_INVALID */
export function dayOfText(text: string): number {
  if (typeof text !== "string") throw invalid(`${shownValue(text)} is no date`, "Write dates as 2026-12-25.");
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(ms) || dayText(ms / dayMs) !== text)
    throw invalid(`${JSON.stringify(text.slice(0, 40))} is no date`, "Write dates as 2026-12-25.");
  return ms / dayMs;
}

/** "sat" or "Saturday" → 6. @throws CALENDAR_INVALID */
export function weekdayOf(text: string): number {
  const day = weekdays.indexOf(text.trim().slice(0, 3).toLowerCase() as (typeof weekdays)[number]);
  if (day < 0) throw invalid(`${JSON.stringify(text.slice(0, 40))} is no day of the week`, "Write sun, mon, … sat.");
  return day;
}

/** @throws CALENDAR_INVALID, ZONE_UNKNOWN */
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

/** The instant at which clocks in the zone show this local time: the first of two, and later by the gap in a gap. */
export function instantAt(zone: Zone, local: number): number {
  const early = local - zone.at(local - dayMs).offset;
  if (early + zone.at(early).offset === local) return early;
  const late = local - zone.at(local + dayMs).offset;
  return late + zone.at(late).offset === local ? late : early;
}

const localOf = (zone: Zone, ms: number) => ms + zone.at(ms).offset;
export const localDayOf = (zone: Zone, ms: number): number => Math.floor(localOf(zone, ms) / dayMs);

/** Which days a task runs on. */
export interface RunDays {
  zone: Zone;
  allows(day: number): boolean;
}

const compiled = new WeakMap<Calendar, { zone: Zone; free: Set<number>; weekend: Set<number> }>();

function compile(calendar: Calendar) {
  let known = compiled.get(calendar);
  if (!known) {
    const free = new Set(calendar.holidays.map((text) => Date.parse(`${text}T00:00:00Z`) / dayMs));
    known = { zone: zoneOf(calendar.zone), free, weekend: new Set(calendar.weekend) };
    compiled.set(calendar, known);
  }
  return known;
}

/** The first of January 1970 was a Thursday. */
const weekdayOfDay = (day: number) => (((day + 4) % 7) + 7) % 7;

export function runDays(calendar: Calendar, on: CalendarRule["on"]): RunDays {
  const { zone, free, weekend } = compile(calendar);
  const works = (day: number) => !free.has(day) && !weekend.has(weekdayOfDay(day));
  return { zone, allows: on === "working-days" ? works : (day) => !works(day) };
}

/** Why a day is not one that a task runs on, in a few words. */
function whyNot(calendar: Calendar, day: number): string {
  const { free, weekend } = compile(calendar);
  const name = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"][weekdayOfDay(day)];
  const what = free.has(day) ? "a holiday" : weekend.has(weekdayOfDay(day)) ? `weekend (${name})` : "a working day";
  return `calendar ${calendar.name}: ${dayText(day)} is ${what}`;
}

/** A schedule whose slots on other days are told to be skipped, each at its own time. */
const skipping = (base: Schedule, calendar: Calendar, days: RunDays): Schedule =>
  judgedSchedule(base, (slotMs, dueMs) => {
    const day = localDayOf(days.zone, slotMs);
    return days.allows(day) ? undefined : { dueMs, skipped: whyNot(calendar, day) };
  });

/**
 * A schedule whose slots on other days are moved. Its slots are the moved times: two that come to lie on one instant are one
 * slot. Worked out a day at a time: what a day has is its own slots, and those of the days without work that are moved to it.
 */
export class MovingSchedule implements Schedule {
  readonly #base: Schedule;
  readonly #calendar: Calendar;
  readonly #days: RunDays;
  /** 1: to the next day, −1: to the last before. */
  readonly #way: 1 | -1;
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
    const from = localDayOf(zone, Math.max(afterMs, 0)) - 1;
    let start = this.#way === 1 ? this.#firstSource(from) : from;
    for (;;) {
      const nominal = this.#base.next(this.#startOf(start) - 1);
      if (nominal === null) return null;
      const target = this.#target(localDayOf(zone, nominal));
      const best = this.#best(target, (day) => this.#firstOn(day, target, afterMs), Math.min);
      if (best !== null) return best;
      start = Math.max(target, localDayOf(zone, nominal), ...this.#sources(target)) + 1;
    }
  }

  previous(beforeMs: number): number | null {
    const { zone } = this.#days;
    const from = localDayOf(zone, Math.max(beforeMs, 0)) + 1;
    let end = this.#way === -1 ? this.#lastSource(from) : from;
    for (;;) {
      const nominal = this.#base.previous(this.#startOf(end + 1));
      if (nominal === null) return null;
      const target = this.#target(localDayOf(zone, nominal));
      const best = this.#best(target, (day) => this.#lastOn(day, target, beforeMs), Math.max);
      if (best !== null) return best;
      end = Math.min(target, localDayOf(zone, nominal), ...this.#sources(target)) - 1;
    }
  }

  judge(slotMs: number, dueMs: number): Judgement | undefined {
    const { zone, allows } = this.#days;
    const day = localDayOf(zone, slotMs);
    if (!allows(day)) {
      const why = `${whyNot(this.#calendar, day)}, and no other day is within ${movedDaysMax} days`;
      return { dueMs, skipped: why };
    }
    const moved = this.#sources(day).filter(
      (source) => source !== day && this.#firstOn(source, day, slotMs - 1) === slotMs,
    );
    if (moved.length === 0) return undefined;
    return { dueMs, note: `calendar ${this.#calendar.name}: moved from ${moved.map(dayText).join(", ")}` };
  }

  /** Slots of days still to come whose moved time is not after `nowMs`: a new calendar or task finds them past already. */
  passedBy(nowMs: number, most: number): number[] {
    const { zone, allows } = this.#days;
    const today = localDayOf(zone, nowMs);
    const passed = new Set<number>();
    for (let day = today; this.#way === -1 && day <= today + movedDaysMax; day++) {
      if (allows(day)) {
        if (day > today) break;
        continue;
      }
      const target = this.#target(day);
      if (target > today || target === day) break;
      let nominal = this.#base.next(Math.max(nowMs, this.#startOf(day) - 1));
      while (nominal !== null && localDayOf(zone, nominal) === day && passed.size < most) {
        const slotMs = this.#moved(nominal, target);
        if (slotMs > nowMs) break;
        passed.add(slotMs);
        nominal = this.#base.next(nominal);
      }
    }
    return [...passed];
  }

  #startOf(day: number): number {
    return instantAt(this.#days.zone, day * dayMs);
  }

  /** Where the slots of a day go; the day itself when there is no other near enough. */
  #target(day: number): number {
    for (let away = 0; away <= movedDaysMax; away++) {
      const target = day + away * this.#way;
      if (this.#days.allows(target)) return target;
    }
    return day;
  }

  /** The days whose slots lie on this one, itself included. */
  #sources(target: number): number[] {
    const sources = [target];
    if (!this.#days.allows(target)) return sources;
    for (let away = 1; away <= movedDaysMax; away++) {
      const day = target - away * this.#way;
      if (this.#days.allows(day)) break;
      sources.push(day);
    }
    return sources;
  }

  #firstSource(day: number): number {
    let first = day;
    while (day - first < movedDaysMax && !this.#days.allows(first - 1)) first -= 1;
    return first;
  }

  #lastSource(day: number): number {
    let last = day;
    while (last - day < movedDaysMax && !this.#days.allows(last + 1)) last += 1;
    return last;
  }

  #best(target: number, on: (day: number) => number | null, pick: (...all: number[]) => number): number | null {
    const found = this.#sources(target)
      .map(on)
      .filter((one) => one !== null);
    return found.length === 0 ? null : pick(...found);
  }

  #moved(nominal: number, target: number): number {
    const { zone } = this.#days;
    const local = localOf(zone, nominal);
    const day = Math.floor(local / dayMs);
    return day === target ? nominal : instantAt(zone, local + (target - day) * dayMs);
  }

  /** How far the moved time may be from where plain counting says, in days on which clocks change. */
  #leeway(day: number, target: number): number {
    const { zone } = this.#days;
    const offsets = [day, day + 1, target, target + 1].map((one) => zone.at(this.#startOf(one)).offset);
    return offsets.every((offset) => offset === offsets[0]) ? 0 : 2 * (Math.max(...offsets) - Math.min(...offsets));
  }

  /** The first of a day's slots that is moved to after an instant, where it is moved to. */
  #firstOn(day: number, target: number, afterMs: number): number | null {
    const { zone } = this.#days;
    const same = afterMs + (day - target) * dayMs - this.#leeway(day, target);
    let nominal = this.#base.next(Math.max(this.#startOf(day) - 1, same - 1));
    while (nominal !== null && localDayOf(zone, nominal) === day) {
      const moved = this.#moved(nominal, target);
      if (moved > afterMs) return moved;
      nominal = this.#base.next(nominal);
    }
    return null;
  }

  #lastOn(day: number, target: number, beforeMs: number): number | null {
    const { zone } = this.#days;
    const same = beforeMs + (day - target) * dayMs + this.#leeway(day, target);
    let nominal = this.#base.previous(Math.min(this.#startOf(day + 1), same + 1));
    while (nominal !== null && localDayOf(zone, nominal) === day) {
      const moved = this.#moved(nominal, target);
      if (moved < beforeMs) return moved;
      nominal = this.#base.previous(nominal);
    }
    return null;
  }
}

/** What a task's rule makes of its schedule. */
export function calendarSchedule(base: Schedule, rule: CalendarRule, calendar: Calendar): Schedule {
  const days = runDays(calendar, rule.on);
  if (rule.otherwise === "skip") return skipping(base, calendar, days);
  return new MovingSchedule(base, calendar, days, rule.otherwise === "next" ? 1 : -1);
}

function invalid(what: string, hint: string): CarillonError {
  return new CarillonError("CALENDAR_INVALID", `calendar: ${what}`, { hint });
}
