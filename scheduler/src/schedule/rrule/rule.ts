/** Parses the value of an RRULE property (RFC 5545, section 3.3.10), validates it, and formats it in a canonical form. */
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { meant } from "../../base/nearest.ts";
import { show } from "../given.ts";
import { sortedUnique } from "../local-times.ts";
import { type RuleTime, ruleTime, ruleTimeBasic } from "./rule-time.ts";

export const frequencies = ["SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"] as const;
export type Frequency = (typeof frequencies)[number];

/** The codes of the weekdays; index 0 is Monday. */
export const weekdayCodes = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"] as const;

export interface NthWeekday {
  weekday: number;
  /**
   * For n > 0, the n-th of these weekdays in the month or year; for n < 0, the n-th from the end; 0 means all of these weekdays.
   */
  nth: number;
}

/** A parsed rule. Lists are ascending; null means that the rule does not have the part. */
export interface Rule {
  frequency: Frequency;
  interval: number;
  /** An instant, a local time in the schedule's zone, or a date. */
  until: RuleTime | null;
  count: number | null;
  seconds: readonly number[] | null;
  minutes: readonly number[] | null;
  hours: readonly number[] | null;
  weekdays: readonly NthWeekday[] | null;
  monthDays: readonly number[] | null;
  yearDays: readonly number[] | null;
  weekNumbers: readonly number[] | null;
  months: readonly number[] | null;
  positions: readonly number[] | null;
  weekStart: number;
}

/**
 * The parts of a rule that are lists of numbers: the field, the lowest and highest value, and whether negative values (from the end) are
 * permitted.
 */
const lists = {
  BYSECOND: { field: "seconds", from: 0, to: 59, signed: false },
  BYMINUTE: { field: "minutes", from: 0, to: 59, signed: false },
  BYHOUR: { field: "hours", from: 0, to: 23, signed: false },
  BYMONTHDAY: { field: "monthDays", from: 1, to: 31, signed: true },
  BYYEARDAY: { field: "yearDays", from: 1, to: 366, signed: true },
  BYWEEKNO: { field: "weekNumbers", from: 1, to: 53, signed: true },
  BYMONTH: { field: "months", from: 1, to: 12, signed: false },
  BYSETPOS: { field: "positions", from: 1, to: 366, signed: true },
} as const;
type ListName = keyof typeof lists;

const partNames = ["FREQ", "INTERVAL", "UNTIL", "COUNT", ...Object.keys(lists), "BYDAY", "WKST"];
const mostInterval = 1_000_000;

export const wrongRule = (what: string, hint: string, path = "rule"): CarillonError =>
  new CarillonError("RRULE_INVALID", `rrule: ${what}`, { hint, path });

/**
 * Parses a rule.
 * @param text such as "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", with or without "RRULE:" before it
 * @throws RRULE_INVALID
 */
export function parseRule(text: string): Rule {
  const parts = partsOf(text);
  const frequency = frequencyOf(parts.get("FREQ"));
  const list = (name: ListName) => numbersOf(name, parts.get(name));
  const rule: Rule = {
    frequency,
    interval: numberOf("INTERVAL", parts.get("INTERVAL"), mostInterval) ?? 1,
    until: untilOf(parts.get("UNTIL")),
    count: numberOf("COUNT", parts.get("COUNT"), limits.ruleCount),
    seconds: list("BYSECOND"),
    minutes: list("BYMINUTE"),
    hours: list("BYHOUR"),
    weekdays: weekdaysOf(parts.get("BYDAY")),
    monthDays: list("BYMONTHDAY"),
    yearDays: list("BYYEARDAY"),
    weekNumbers: list("BYWEEKNO"),
    months: list("BYMONTH"),
    positions: list("BYSETPOS"),
    weekStart: weekStartOf(parts.get("WKST")),
  };
  refuseContradictions(rule);
  return rule;
}

function partsOf(text: string): Map<string, string> {
  const parts = new Map<string, string>();
  for (const part of text
    .trim()
    .replace(/^RRULE:/i, "")
    .replace(/;$/, "")
    .split(";")) {
    const [, given = "", value = ""] = /^([^=]*)=(.*)$/.exec(part.trim()) ?? [];
    const name = given.toUpperCase();
    if (name === "")
      throw wrongRule(
        `${show(part)} is not NAME=VALUE`,
        'Write parts with ";" between them, such as "FREQ=WEEKLY;BYDAY=TU".',
      );
    if (name === "RSCALE" || name === "SKIP")
      throw wrongRule(
        `${name} (RFC 7529) is not supported`,
        'For a month that lacks the day use every("1 month", { on: 31 }).',
      );
    if (!partNames.includes(name))
      throw wrongRule(
        `${show(name.slice(0, 20))} is not a part of a rule${meant(name, partNames)}`,
        `Known are ${partNames.join(", ")}.`,
      );
    if (parts.has(name)) throw wrongRule(`${name} is there twice`, "Give its values in one list.");
    if (value === "") throw wrongRule(`${name} has no value`, "Give one, or leave the part out.");
    parts.set(name, value.toUpperCase());
  }
  return parts;
}

function frequencyOf(value: string | undefined): Frequency {
  if ((frequencies as readonly (string | undefined)[]).includes(value)) return value as Frequency;
  throw wrongRule(
    value === undefined ? "FREQ is missing" : `FREQ=${value.slice(0, 20)} is not a frequency`,
    `Use FREQ= with one of ${frequencies.join(", ")}.`,
  );
}

function numberOf(name: string, value: string | undefined, most: number): number | null {
  if (value === undefined) return null;
  const number = /^\d{1,10}$/.test(value) ? Number(value) : 0;
  if (number >= 1 && number <= most) return number;
  throw wrongRule(
    `${name}=${value.slice(0, 20)} is not a whole number from 1 to ${most}`,
    name === "COUNT" ? "For more occurrences give UNTIL." : "Use a larger FREQ.",
  );
}

function numbersOf(name: ListName, value: string | undefined): number[] | null {
  if (value === undefined) return null;
  const { from, to, signed } = lists[name];
  return sortedUnique(
    value.split(",").map((item) => {
      const number = /^[+-]?\d{1,3}$/.test(item.trim()) ? Number(item) : Number.NaN;
      const size = signed ? Math.abs(number) : number;
      if (size >= from && size <= to) return number;
      const leap = name === "BYSECOND" && number === 60 ? " Epoch time has no leap seconds." : "";
      throw wrongRule(
        `${name} cannot be ${show(item)}`,
        `Its values are ${from} to ${to}${signed ? `, or -${to} to -${from} from the end` : ""}.${leap}`,
      );
    }),
  );
}

function weekdaysOf(value: string | undefined): NthWeekday[] | null {
  if (value === undefined) return null;
  const found = new Map<string, NthWeekday>();
  for (const item of value.split(",")) {
    const [, nth = "", code = ""] = /^([+-]?\d{1,2})?([A-Z]{2})$/.exec(item.trim()) ?? [];
    const weekday = (weekdayCodes as readonly string[]).indexOf(code);
    const number = Number(nth);
    if (weekday < 0 || (nth !== "" && (number === 0 || Math.abs(number) > 53)))
      throw wrongRule(`BYDAY cannot be ${show(item)}`, 'Its values are such as "TU", "2TU" (the second), "-1FR".');
    found.set(`${number}${code}`, { weekday, nth: number });
  }
  return [...found.values()].sort((a, b) => a.nth - b.nth || a.weekday - b.weekday);
}

function weekStartOf(value: string | undefined): number {
  const weekday = (weekdayCodes as readonly string[]).indexOf(value ?? "MO");
  if (weekday >= 0) return weekday;
  throw wrongRule(`WKST cannot be ${show(value)}`, `Its values are ${weekdayCodes.join(", ")}.`);
}

function untilOf(value: string | undefined): RuleTime | null {
  return value === undefined ? null : ruleTime(value, "UNTIL", "rule");
}

/** Refuses combinations of parts that RFC 5545 forbids, and combinations that programs interpret in different ways. */
function refuseContradictions(rule: Rule): void {
  const { frequency, until, count, weekdays, monthDays, yearDays, weekNumbers, months, positions } = rule;
  const forbid = (what: string, hint: string) => {
    throw wrongRule(what, hint);
  };
  if (until && count !== null) forbid("UNTIL and COUNT do not go together", "Leave one of the two out.");
  if (weekNumbers && frequency !== "YEARLY")
    forbid(`BYWEEKNO does not go with FREQ=${frequency}`, "It goes with FREQ=YEARLY alone.");
  if (weekNumbers && !weekdays)
    forbid("BYWEEKNO without BYDAY", "Programs disagree on which days of the week are meant: give BYDAY.");
  if (yearDays && (frequency === "DAILY" || frequency === "WEEKLY" || frequency === "MONTHLY"))
    forbid(`BYYEARDAY does not go with FREQ=${frequency}`, "It goes with FREQ=YEARLY.");
  if (monthDays && frequency === "WEEKLY")
    forbid("BYMONTHDAY does not go with FREQ=WEEKLY", "Use FREQ=DAILY with BYDAY and BYMONTHDAY.");
  const numbered = weekdays?.some(({ nth }) => nth !== 0);
  if (numbered && frequency !== "MONTHLY" && frequency !== "YEARLY")
    forbid(`a number in BYDAY does not go with FREQ=${frequency}`, "It goes with FREQ=MONTHLY and FREQ=YEARLY.");
  if (numbered && weekNumbers)
    forbid("a number in BYDAY does not go with BYWEEKNO", "Leave the number out: a week has each weekday once.");
  if (numbered && (frequency === "MONTHLY" || months) && weekdays?.some(({ nth }) => Math.abs(nth) > 5))
    forbid("no month has a sixth of a weekday", "A number in BYDAY counts within the month here: at most 5.");
  const others = [rule.seconds, rule.minutes, rule.hours, weekdays, monthDays, yearDays, weekNumbers, months];
  if (positions && others.every((part) => part === null))
    forbid("BYSETPOS without another BY part", "It chooses among what the others give: add one of them.");
}

export const weekdayText = ({ weekday, nth }: NthWeekday): string => `${nth === 0 ? "" : nth}${weekdayCodes[weekday]}`;

/** Formats the rule in a fixed order and without parts that have their default value. */
export function ruleText(rule: Rule): string {
  const { interval, until, count, weekdays, weekStart } = rule;
  return [
    `FREQ=${rule.frequency}`,
    ...(interval === 1 ? [] : [`INTERVAL=${interval}`]),
    ...(until === null ? [] : [`UNTIL=${ruleTimeBasic(until)}`]),
    ...(count === null ? [] : [`COUNT=${count}`]),
    ...(Object.entries(lists) as [ListName, (typeof lists)[ListName]][]).flatMap(([name, { field }]) => {
      const values = rule[field];
      return values === null ? [] : [`${name}=${values.join(",")}`];
    }),
    ...(weekdays === null ? [] : [`BYDAY=${weekdays.map(weekdayText).join(",")}`]),
    ...(weekStart === 0 ? [] : [`WKST=${weekdayCodes[weekStart]}`]),
  ].join(";");
}
