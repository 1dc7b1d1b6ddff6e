/** Holidays from an iCalendar file (RFC 5545): the days that its events touch, recurrence carried out within a window. */
import ICAL from "ical.js";
import { CutOff, cutOffAfter } from "../base/cut-off.ts";
import { CarillonError, messageOf } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { dayMs, dayText, localDayOf } from "./calendar.ts";
import { zoneOf } from "./zone.ts";

export interface IcsWindow {
  /** Days since 1970-01-01, both included. */
  fromDay: number;
  toDay: number;
  /** In which a moment of an event that is not for whole days lies on a day. */
  zone: string;
}

/**
 * @returns the days, as texts, ascending
 * @throws CALENDAR_INVALID for what is no calendar, and for one that would take too much to carry out
 */
export function holidaysOfIcs(text: string, window: IcsWindow): string[] {
  if (Buffer.byteLength(text) > limits.icsBytes)
    throw invalid(`the file is larger than ${limits.icsBytes} bytes`, "Leave out what is long past.");
  try {
    // A rule that the library finds no end of would hold up all that this process does.
    return cutOffAfter(limits.icsMs, () => daysOf(text, window));
  } catch (cause) {
    if (!(cause instanceof CutOff)) throw cause;
    throw invalid(cause.message, "One of its rules may never come true; or take the file in parts.");
  }
}

function daysOf(text: string, window: IcsWindow): string[] {
  let root: ICAL.Component;
  try {
    root = new ICAL.Component(ICAL.parse(text) as ConstructorParameters<typeof ICAL.Component>[0]);
  } catch (cause) {
    // Of what is no calendar at all the parser tells where it broke itself.
    const why = cause instanceof TypeError ? "" : `: ${messageOf(cause).slice(0, 200)}`;
    throw invalid(`this is no calendar${why}`, "An ICS file begins with BEGIN:VCALENDAR.");
  }
  if (root.name !== "vcalendar") throw invalid("this is no calendar", "An ICS file begins with BEGIN:VCALENDAR.");
  const days = new Set<number>();
  const budget = { left: limits.icsOccurrences as number };
  const events = root.getAllSubcomponents("vevent");
  const overridden = new Map<string, Set<string>>();
  for (const event of events) readable(event, () => addOverride(event, overridden));
  for (const event of events) {
    readable(event, () => {
      if (String(event.getFirstPropertyValue("status") ?? "").toUpperCase() !== "CANCELLED")
        addDays(event, overridden, window, days, budget);
    });
  }
  return [...days].sort((a, b) => a - b).map(dayText);
}

/** The library reads a value when it is asked for, and throws for one that it cannot read. */
function readable(event: ICAL.Component, work: () => void): void {
  try {
    work();
  } catch (cause) {
    if (cause instanceof CarillonError) throw cause;
    throw invalid(
      `${JSON.stringify(nameOf(event).slice(0, 80))}: ${messageOf(cause).slice(0, 200)}`,
      "Mend the event, or leave it out.",
    );
  }
}

function nameOf(event: ICAL.Component): string {
  try {
    return String(event.getFirstPropertyValue("summary") ?? event.getFirstPropertyValue("uid") ?? "an event");
  } catch {
    // Its name may be what cannot be read.
    return "an event";
  }
}

/** What single occurrences were replaced: by the event's uid, the times that no longer count. */
function addOverride(event: ICAL.Component, times: Map<string, Set<string>>): void {
  const at = event.getFirstPropertyValue("recurrence-id");
  if (at === null || at === undefined) return;
  const uid = String(event.getFirstPropertyValue("uid") ?? "");
  times.set(uid, (times.get(uid) ?? new Set()).add(String(at)));
}

const earliestYear = 1900;
/** Of one event, by its DURATION. */
const longestDays = 3_660;
const tooOften = new Set(["SECONDLY", "MINUTELY", "HOURLY"]);

function addDays(
  event: ICAL.Component,
  overridden: Map<string, Set<string>>,
  { fromDay, toDay, zone }: IcsWindow,
  days: Set<number>,
  budget: { left: number },
): void {
  const start = event.getFirstPropertyValue("dtstart");
  if (!(start instanceof ICAL.Time)) throw new Error("it has no DTSTART");
  // What a rule gives is worked out from its start on, so an early one would take long.
  if (start.year < earliestYear) throw new Error(`it begins in the year ${start.year}, before ${earliestYear}`);
  const lengthDays = touched(event, start, zone);
  const isOverride = event.hasProperty("recurrence-id");
  const rules = isOverride ? [] : event.getAllProperties("rrule").map((rule) => rule.getFirstValue());
  for (const rule of rules) {
    if (!(rule instanceof ICAL.Recur)) throw new Error("its RRULE cannot be read");
    if (tooOften.has(rule.freq)) throw new Error(`it recurs ${rule.freq.toLowerCase()}, which no holiday does`);
    checkPossible(rule);
  }
  const gone = isOverride ? undefined : overridden.get(String(event.getFirstPropertyValue("uid") ?? ""));
  const add = (at: ICAL.Time) => {
    const first = dayOf(at, zone);
    for (let day = Math.max(first, fromDay); day < first + lengthDays && day <= toDay; day++) days.add(day);
    return first;
  };
  if (isOverride || (rules.length === 0 && !event.hasProperty("rdate"))) {
    add(start);
    return;
  }
  // The library leaves the start out where there are only dates.
  if (rules.length === 0) add(start);
  const expansion = new ICAL.RecurExpansion({ component: event, dtstart: start });
  for (let at = expansion.next(); at; at = expansion.next()) {
    budget.left -= 1;
    if (budget.left < 0)
      throw invalid(`its rules give more than ${limits.icsOccurrences} days`, "Begin the rules later.");
    if (gone?.has(String(at))) continue;
    if (add(at) > toDay) break;
  }
}

/** A rule for a date that never comes would be searched for until the end of time. */
function checkPossible(rule: ICAL.Recur): void {
  const parts = rule.parts as Record<string, (number | string)[] | undefined>;
  const monthDays = (parts.BYMONTHDAY ?? []).map(Number);
  const months = (parts.BYMONTH ?? []).map(Number);
  if (months.some((month) => !(month >= 1 && month <= 12))) throw new Error("its RRULE names a month that is none");
  if (monthDays.length > 0 && months.length > 0) {
    const longest = (month: number) => [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0;
    if (!months.some((month) => monthDays.some((day) => Math.abs(day) <= longest(month) && day !== 0)))
      throw new Error("its RRULE names a date that never comes");
  }
}

/** A day of its own zone or none as it is written; a moment of UTC as the calendar's zone sees it. */
function dayOf(at: ICAL.Time, zone: string): number {
  if (at.zone === ICAL.Timezone.utcTimezone && !at.isDate)
    return localDayOf(zoneOf(zone), Date.UTC(at.year, at.month - 1, at.day, at.hour, at.minute, at.second));
  return Date.UTC(at.year, at.month - 1, at.day) / dayMs;
}

/** How many days one occurrence touches. */
function touched(event: ICAL.Component, start: ICAL.Time, zone: string): number {
  const end = event.getFirstPropertyValue("dtend");
  const duration = event.getFirstPropertyValue("duration");
  let last: ICAL.Time | undefined;
  if (end instanceof ICAL.Time) last = end.clone();
  else if (duration instanceof ICAL.Duration) {
    // Days are added month by month: so many would take for ever.
    const { weeks, days, hours, minutes, seconds } = duration;
    const lengthDays = 7 * weeks + days + hours / 24 + minutes / 1_440 + seconds / 86_400;
    if (lengthDays > longestDays) throw new Error(`it lasts for ${Math.round(lengthDays)} days`);
    last = start.clone();
    last.addDuration(duration);
  }
  if (last === undefined) return 1;
  // The end is the first moment that does not belong to it.
  if (!last.isDate) last.addDuration(ICAL.Duration.fromSeconds(-1));
  const spanned = dayOf(last, zone) - dayOf(start, zone) + (last.isDate ? 0 : 1);
  return Math.max(1, spanned);
}

function invalid(what: string, hint: string): CarillonError {
  return new CarillonError("CALENDAR_INVALID", `calendar: ${what}`, { hint });
}
