/** Reads the times, periods and lengths in the lines of an iCalendar file (RFC 5545, section 3.3). */
import { isCarillonError } from "../../base/errors.ts";
import { instantAt, type Offsets } from "../calendar.ts";
import { show } from "../given.ts";
import { dayMs } from "../local-times.ts";
import { type RuleTime, ruleTime } from "../rrule/rule-time.ts";
import { type Property, wrong } from "./content-lines.ts";

/** A moment in a file. A local time without a zone is a time on its event's clock. */
export interface Moment extends RuleTime {
  zone: Offsets | null;
}

/** A time of RDATE; a period has its own end. */
export interface Period extends Moment {
  end: Moment | null;
  lengthMs: number | null;
}

const timeHint = "Write a date as 20261225, a time as 20261225T090000, in UTC as 20261225T080000Z.";

/** Calls a parser of a rule or a time, and adds the line of the file to its errors. */
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
  // Some programs write a time although VALUE declares a date.
  if (time.kind === "local" && property.parameters.get("VALUE")?.toUpperCase() === "DATE")
    return { kind: "day", ms: Math.floor(time.ms / dayMs) * dayMs, zone: null };
  return { ...time, zone: time.kind === "local" ? zone : null };
}

/** @param zone the zone that the line names @throws CALENDAR_INVALID */
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

/** @throws CALENDAR_INVALID */
export function timeOf(property: Property, zone: Offsets | null): Moment {
  const [first, second] = timesOf(property, zone);
  if (first === undefined || second || first.end || first.lengthMs !== null)
    throw wrong(property, "is not one time", timeHint);
  return { kind: first.kind, ms: first.ms, zone: first.zone };
}

/** "P1DT12H" in milliseconds. @throws CALENDAR_INVALID */
export function lengthOf(property: Property, text: string): number {
  const found = /^\+?P(?=[\dT])(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/i.exec(text.trim());
  if (found === null) throw wrong(property, `${show(text)} is not a length of time from 0 on`, "Such as P2D or PT12H.");
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = found
    .slice(1)
    .map((digits) => Number(digits ?? 0));
  return (weeks * 7 + days) * dayMs + ((hours * 60 + minutes) * 60 + seconds) * 1000;
}

/** The moment as a local time on a clock. */
export function onClock({ kind, ms, zone }: Moment, clock: Offsets): number {
  if (kind === "day" || (kind === "local" && (zone === null || zone === clock))) return ms;
  const instant = kind === "instant" ? ms : instantAt(zone as Offsets, ms);
  return instant + clock.at(instant).offset;
}

/**
 * The date that a moment stands for in a series of whole days. Exchange and Google write midnight in their user's zone as a UTC time; other
 * programs write the date with 00:00:00Z or 23:59:59Z.
 */
export function dateOf(moment: Moment, home: Offsets): number {
  const rest = ((moment.ms % dayMs) + dayMs) % dayMs;
  const isWritten = moment.kind !== "instant" || rest === 0 || rest === dayMs - 1000;
  return Math.floor((isWritten ? moment.ms : onClock(moment, home)) / dayMs) * dayMs;
}
