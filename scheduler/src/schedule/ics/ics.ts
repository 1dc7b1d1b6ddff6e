/**
 * Reads holidays from an iCalendar file (RFC 5545): the days within a window on which its events take place. The code of the schedule kind
 * `rrule` computes recurrence rules. See docs/tasks/calendar-files.md.
 */
import { CutOff, cutOffAfter } from "../../base/cut-off.ts";
import { limits } from "../../base/limits.ts";
import { dayMs, dayText, localDayOf } from "../calendar.ts";
import { type Zone, zoneOf } from "../zone.ts";
import { type Component, calendarsOf, invalid } from "./content-lines.ts";
import { type Clocks, type IcsEvent, readEvent } from "./event.ts";
import { seriesTimes } from "./series.ts";
import { IcsZones } from "./zones.ts";

export interface IcsWindow {
  /** The first and last day of the window, as days since 1970-01-01; both are included. */
  fromDay: number;
  toDay: number;
  /** The zone in which an event with a UTC time is assigned to a day. */
  zone: string;
}

/** Returns a window from 366 days ago, which backfills may need, to `years` years ahead. @param zone see IcsWindow */
export function icsWindow(nowMs: number, zone: string, years = 10): IcsWindow {
  const today = Math.floor(nowMs / dayMs);
  return { fromDay: today - 366, toDay: today + Math.ceil(years * 365.25), zone };
}

/** A notice about a part of the file that was ignored or changed. */
export interface IcsNotice {
  line: number;
  message: string;
}

export interface IcsDays {
  /** Dates such as 2026-12-25, ascending. */
  days: string[];
  /** The titles that the file gives the days, by date. Days of events without a title are left out. */
  names: Map<string, string>;
  notices: IcsNotice[];
}

/** The maximum number of notices per file. Beyond it, one more notice gives the number of those left out. */
const mostNotices = 200;

/**
 * Reads the holidays of an iCalendar file.
 * @param isStrict true: a notice about an unsupported part is thrown as an error
 * @throws CALENDAR_INVALID for a file that is not a calendar, that is too large, or that would take too long to compute
 */
export function readIcs(text: string, window: IcsWindow, isStrict = false): IcsDays {
  if (Buffer.byteLength(text) > limits.icsBytes)
    throw invalid(`the file is larger than ${limits.icsBytes} bytes`, "Leave out what is long past.");
  try {
    // The computation has a time limit, because some rules are slow to compute and a file may contain thousands of them.
    const { days, names, notices } = cutOffAfter(limits.icsMs, () => daysOf(text, window));
    const [first, ...more] = notices;
    if (isStrict && first)
      throw invalid(
        `line ${first.line}, ${first.message}${more.length === 0 ? "" : ` (and ${more.length} more)`}`,
        "Mend the file, or read it without the option strict: then this is reported, and the rest counts.",
      );
    const rest = notices.splice(mostNotices);
    if (rest[0]) notices.push({ line: rest[0].line, message: `and ${rest.length} more from this line on` });
    return { days, names, notices };
  } catch (cause) {
    if (!(cause instanceof CutOff)) throw cause;
    throw invalid(cause.message, "Leave out what is long past, or take the file in parts.");
  }
}

/** Returns only the days of `readIcs`. @throws CALENDAR_INVALID */
export const holidaysOfIcs = (text: string, window: IcsWindow): string[] => readIcs(text, window).days;

function daysOf(text: string, { fromDay, toDay, zone: zoneText }: IcsWindow): IcsDays {
  const zone = zoneOf(zoneText);
  const notices: IcsNotice[] = [];
  const tell = (line: number, message: string) => void notices.push({ line, message });
  const days = new Set<number>();
  const names = new Map<string, string>();
  let left: number = limits.icsOccurrences;
  let count = 0;
  for (const calendar of calendarsOf(text)) {
    const events = eventsOf(calendar, zone, tell);
    count += events.length;
    for (const { event, replaced } of latest(events)) {
      for (const { first, last } of seriesTimes(
        event,
        replaced,
        { fromDay, toDay },
        (ms) => dayOf(event, ms, zone),
        tell,
      )) {
        if (event.rules.length > 0 && --left < 0)
          throw invalid(`its rules give more than ${limits.icsOccurrences} days`, "Take the file in parts.");
        for (let day = Math.max(first, fromDay); day <= last && day <= toDay; day++) {
          days.add(day);
          if (event.summary !== "" && !names.has(dayText(day))) names.set(dayText(day), event.summary);
        }
      }
    }
  }
  if (count === 0)
    throw invalid("the file has no event (VEVENT)", "Without an event it has no day. Is it the right file?");
  notices.sort((a, b) => a.line - b.line);
  if (days.size === 0) tell(1, `none of the ${count} events gives a day from ${dayText(fromDay)} to ${dayText(toDay)}`);
  return { days: [...days].sort((a, b) => a - b).map(dayText), names, notices };
}

/**
 * Returns the day of an event. A local time or a date keeps its date as written; a UTC time is converted to the calendar's zone.
 */
const dayOf = ({ start }: IcsEvent, ms: number, zone: Zone): number =>
  start?.kind === "instant" ? localDayOf(zone, ms) : Math.floor(ms / dayMs);

function eventsOf(calendar: Component, zone: Zone, tell: (line: number, message: string) => void): IcsEvent[] {
  const zones = new IcsZones(calendar, zone, ({ line, name }, tzid) =>
    tell(line, `${name}: TZID=${tzid.slice(0, 60)} is not a known zone: its times are taken as written`),
  );
  const clocks: Clocks = { zones, utc: zoneOf("UTC"), tell };
  const others = new Map<string, number>();
  for (const { name, line } of calendar.components)
    if (!/^(?:VEVENT|VTIMEZONE|X-.*)$/.test(name) && !others.has(name)) others.set(name, line);
  for (const [name, line] of others) tell(line, `${name.slice(0, 40)} is left out: only events (VEVENT) give days`);
  return calendar.components.filter(({ name }) => name === "VEVENT").map((event) => readEvent(event, clocks));
}

interface Counted {
  event: IcsEvent;
  /** Events that replace single occurrences of this event. */
  replaced: IcsEvent[];
}

/**
 * Selects the version with the highest SEQUENCE of each event; every event without a UID is selected. Leaves out an event if the
 * selected version is cancelled.
 */
function latest(events: IcsEvent[]): Counted[] {
  const highest = new Map<string, number>();
  const keyOf = ({ uid, occurrence }: IcsEvent) => JSON.stringify([uid, occurrence?.key ?? null]);
  for (const event of events) highest.set(keyOf(event), Math.max(event.sequence, highest.get(keyOf(event)) ?? 0));
  const current = events.filter((event) => event.uid === "" || event.sequence === highest.get(keyOf(event)));
  const replacing = new Map<string, IcsEvent[]>();
  for (const event of current.filter(({ occurrence }) => occurrence)) {
    const others = replacing.get(event.uid);
    if (others) others.push(event);
    else replacing.set(event.uid, [event]);
  }
  return current
    .filter(({ isCancelled }) => !isCancelled)
    .map((event) => ({ event, replaced: event.occurrence ? [] : (replacing.get(event.uid) ?? []) }));
}
