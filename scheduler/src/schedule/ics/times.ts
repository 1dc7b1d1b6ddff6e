/** Parses the times, periods and durations in an iCalendar file (RFC 5545, section 3.3). */
import { isCarillonError } from "../../base/errors.ts";
import { instantAt, type Offsets } from "../calendar.ts";
import { show } from "../given.ts";
import { dayMs } from "../local-times.ts";
import { type RuleTime, ruleTime } from "../rrule/rule-time.ts";
import { type Property, wrong } from "./content-lines.ts";

/** A time in a file. A local time whose zone is null is in the zone of its event. */
export interface Moment extends RuleTime {
  zone: Offsets | null;
}

/** One value of RDATE; a period has an end or a duration of its own. */
export interface Period extends Moment {
  end: Moment | null;
  lengthMs: number | null;
}

const timeHint = "Write a date as 20261225, a time as 20261225T090000, in UTC as 20261225T080000Z.";

/** Calls a parser and adds the property's line number to its errors. */
function reading<T>(property: Property, hint: string | undefined, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!isCarillonError(error, "RRULE_INVALID")) throw error;
    throw wrong(property, error.message.replace(/^rrule: (?:value: )?/, ""), hint ?? error.hint);
  }
}

export const readingRule = <T>(property: Property, read: () => T): T => reading(property, undefined, read);

function momentOf(property: Property, text: string, zone: Offsets | null): Moment {
  const time = reading(property, timeHint, () => ruleTime(text.trim().toUpperCase(), "value", ""));
  // Some programs write a date with a time although VALUE=DATE declares a date; the time is ignored.
  if (time.kind === "local" && property.parameters.get("VALUE")?.toUpperCase() === "DATE")
    return { kind: "day", ms: Math.floor(time.ms / dayMs) * dayMs, zone: null };
  return { ...time, zone: time.kind === "local" ? zone : null };
}

/**
 * Parses the values of a property.
 * @param zone the zone that the property names
 * @throws CALENDAR_INVALID
 */
export function timesOf(property: Property, zone: Offsets | null): Period[] {
  const type = property.parameters.get("VALUE")?.toUpperCase() ?? "DATE-TIME";
  if (!["DATE", "DATE-TIME", "PERIOD"].includes(type))
    throw wrong(property, `VALUE=${type.slice(0, 40)} is not a kind of time`, "Known are DATE, DATE-TIME and PERIOD.");
  return property.value.split(",").map((text) => {
    const [begin = "", end] = text.split("/");
    const isLength = end !== undefined && /^[+-]?P/i.test(end.trim());
    return {
      ...momentOf(property, begin, zone),
      end: end === undefined || isLength ? null : momentOf(property, end, zone),
      lengthMs: isLength ? lengthOf(property, end) : null,
    };
  });
}

/** Parses the value of a property that has exactly one time. @throws CALENDAR_INVALID */
export function timeOf(property: Property, zone: Offsets | null): Moment {
  const [first, second] = timesOf(property, zone);
  if (first === undefined || second || first.end || first.lengthMs !== null)
    throw wrong(property, "is not one time", timeHint);
  return { kind: first.kind, ms: first.ms, zone: first.zone };
}

/** Parses a duration such as "P1DT12H" to milliseconds. @throws CALENDAR_INVALID */
export function lengthOf(property: Property, text: string): number {
  const found = /^\+?P(?=[\dT])(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/i.exec(text.trim());
  if (found === null) throw wrong(property, `${show(text)} is not a length of time from 0 on`, "Such as P2D or PT12H.");
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = found
    .slice(1)
    .map((digits) => Number(digits ?? 0));
  return (weeks * 7 + days) * dayMs + ((hours * 60 + minutes) * 60 + seconds) * 1000;
}

/** Converts a moment to a local time in the zone `clock`. */
export function onClock({ kind, ms, zone }: Moment, clock: Offsets): number {
  if (kind === "day" || (kind === "local" && (zone === null || zone === clock))) return ms;
  const instant = kind === "instant" ? ms : instantAt(zone as Offsets, ms);
  return instant + clock.at(instant).offset;
}

/**
 * Returns the date that a moment means in a series of whole days, in ms. Exchange and Google write midnight in the user's zone as a UTC
 * time, which is converted; other programs write the date with 00:00:00Z or 23:59:59Z, which is taken as written.
 */
export function dateOf(moment: Moment, home: Offsets): number {
  const rest = ((moment.ms % dayMs) + dayMs) % dayMs;
  const isWritten = moment.kind !== "instant" || rest === 0 || rest === dayMs - 1000;
  return Math.floor((isWritten ? moment.ms : onClock(moment, home)) / dayMs) * dayMs;
}
