/** Reads one VEVENT: its start, its duration, and the parts of its recurrence. */
import { limits } from "../../base/limits.ts";
import type { Offsets } from "../calendar.ts";
import { dayMs } from "../local-times.ts";
import { parseRule, type Rule } from "../rrule/rule.ts";
import { type Component, type Property, single, wrong } from "./content-lines.ts";
import { dateOf, lengthOf, type Moment, onClock, type Period, readingRule, timeOf, timesOf } from "./times.ts";
import type { IcsZones } from "./zones.ts";

export interface Clocks {
  zones: IcsZones;
  utc: Offsets;
  tell(line: number, message: string): void;
}

export interface RuleLine {
  rule: Rule;
  property: Property;
}

export interface IcsEvent {
  uid: string;
  sequence: number;
  isCancelled: boolean;
  /** The event's title (SUMMARY); "" if it has none. */
  summary: string;
  /**
   * For an event that replaces an occurrence of a recurring event: that occurrence, and whether the event also replaces all later
   * occurrences.
   */
  occurrence: { key: string; moment: Moment; andLater: boolean } | null;
  /** null if the event is cancelled and has no start. */
  start: Moment | null;
  startLine: number;
  /** The zone in which the event's local times are given: the zone of its start. */
  clock: Offsets;
  home: Offsets;
  lengthMs: number;
  rules: RuleLine[];
  exceptRules: RuleLine[];
  /** Additional local times of the event (RDATE), each with its own duration. */
  added: { ms: number; lengthMs: number }[];
  left: Moment[];
}

const longestSummary = 200;
/** The maximum duration of one occurrence, in days. */
const longestDays = 3_660;
const tooOften = ["SECONDLY", "MINUTELY", "HOURLY"];

/** @throws CALENDAR_INVALID */
export function readEvent(component: Component, { zones, utc, tell }: Clocks): IcsEvent {
  const all = (name: string) => component.properties.filter((one) => one.name === name);
  const timeIn = (property: Property) => timeOf(property, zones.of(property));
  const isCancelled = single(component, "STATUS")?.value.trim().toUpperCase() === "CANCELLED";
  const replaces = single(component, "RECURRENCE-ID");
  const range = replaces?.parameters.get("RANGE")?.toUpperCase();
  if (replaces && range !== undefined && range !== "THISANDFUTURE")
    tell(
      replaces.line,
      `RECURRENCE-ID: RANGE=${range.slice(0, 40)} is not supported: this one occurrence alone is replaced`,
    );
  const startLine = single(component, "DTSTART");
  if (startLine === undefined && !isCancelled)
    throw wrong(component, "the event has no DTSTART", "Give the event a start, or leave it out.");
  const start = startLine === undefined ? null : timeIn(startLine);
  const home = zones.home;
  const clock = start?.kind === "instant" ? utc : (start?.zone ?? home);
  const moment = replaces && timeIn(replaces);
  const event: IcsEvent = {
    uid: single(component, "UID")?.value.trim() ?? "",
    sequence: sequenceOf(single(component, "SEQUENCE")),
    isCancelled,
    summary: plainText(single(component, "SUMMARY")?.value ?? ""),
    occurrence: moment ? { key: keyOf(moment, home), moment, andLater: range === "THISANDFUTURE" } : null,
    start,
    startLine: startLine?.line ?? component.line,
    clock,
    home,
    lengthMs: 0,
    rules: [],
    exceptRules: [],
    added: [],
    left: [],
  };
  if (start === null || isCancelled) return event;
  event.lengthMs = eventLength(component, start, clock, timeIn);
  if (replaces) {
    for (const { name, line } of component.properties)
      if (["RRULE", "RDATE", "EXRULE", "EXDATE"].includes(name))
        tell(line, `${name} is left out: the event replaces one occurrence of another`);
    return event;
  }
  const rulesOf = (name: string) => all(name).flatMap((property) => ruleOf(property, tell) ?? []);
  event.rules = rulesOf("RRULE");
  event.exceptRules = rulesOf("EXRULE");
  event.left = all("EXDATE").flatMap((property) => timesOf(property, zones.of(property)));
  event.added = all("RDATE").flatMap((property) =>
    timesOf(property, zones.of(property)).map((period) => ({
      ms: inSeries(event, period),
      lengthMs: periodLength(property, period, event),
    })),
  );
  return event;
}

/** Converts a moment to a local time of the event; in a series of whole days, to its date. */
export function inSeries({ start, clock, home }: IcsEvent, moment: Moment): number {
  return start?.kind === "day" ? dateOf(moment, home) : onClock(moment, clock);
}

/** Converts a value of the type TEXT (RFC 5545, section 3.3.11) to a single line of plain text. */
const plainText = (value: string): string =>
  value
    .replace(/\\(.)/g, (_, escaped: string) => (/n/i.test(escaped) ? " " : escaped))
    .trim()
    .slice(0, longestSummary);

const keyOf = (moment: Moment, home: Offsets): string =>
  moment.kind === "day" ? `day ${moment.ms}` : String(onClock(moment, home));

function sequenceOf(property: Property | undefined): number {
  const text = property?.value.trim() ?? "0";
  if (property && !/^\d{1,10}$/.test(text))
    throw wrong(property, `${JSON.stringify(text.slice(0, 40))} is not a whole number`, "Such as 0.");
  return Number(text);
}

function eventLength(
  component: Component,
  start: Moment,
  clock: Offsets,
  timeIn: (property: Property) => Moment,
): number {
  const end = single(component, "DTEND");
  if (end !== undefined) return checkedLength(end, onClock(timeIn(end), clock) - start.ms);
  const duration = single(component, "DURATION");
  return duration === undefined ? 0 : checkedLength(duration, lengthOf(duration, duration.value));
}

function periodLength(property: Property, { end, lengthMs, ms }: Period, event: IcsEvent): number {
  if (lengthMs !== null) return checkedLength(property, lengthMs);
  if (end === null) return event.lengthMs;
  // In a valid file, `end.ms` and `ms` are comparable: both are local times in the same zone, or both are instants. This is not
  // checked.
  return checkedLength(property, end.ms - ms);
}

function checkedLength(property: Property, lengthMs: number): number {
  if (lengthMs < 0)
    throw wrong(property, "the end lies before the start", "The end of whole days is the day after the last one.");
  if (lengthMs > longestDays * dayMs)
    throw wrong(
      property,
      `the event lasts for ${Math.round(lengthMs / dayMs)} days, and the limit is ${longestDays}`,
      "Is its year right? For more days use several events.",
    );
  return lengthMs;
}

/**
 * Parses a rule. Returns null and adds a notice for a rule with an RSCALE or SKIP that changes its meaning, which is not
 * supported.
 */
function ruleOf(property: Property, tell: Clocks["tell"]): RuleLine | null {
  const { name, line } = property;
  // Removes RSCALE and SKIP (RFC 7529) where they state the defaults.
  const value = property.value
    .split(";")
    .filter((part) => !/^\s*(?:RSCALE=GREGORIAN|SKIP=OMIT)\s*$/i.test(part))
    .join(";");
  const foreign = /(?:^|;)\s*((?:RSCALE|SKIP)=[^;]*)/i.exec(value)?.[1];
  if (foreign !== undefined) {
    tell(line, `${name}: ${foreign.slice(0, 40)} is not supported, and the rule is left out`);
    return null;
  }
  if (value.length > limits.ruleTextLength)
    throw wrong(property, `the rule is longer than ${limits.ruleTextLength} characters`, "Use several events.");
  const rule = readingRule(property, () => parseRule(value));
  if (tooOften.includes(rule.frequency))
    throw wrong(property, `the event recurs ${rule.frequency.toLowerCase()}, which no holiday does`, "Leave it out.");
  return { rule, property };
}
