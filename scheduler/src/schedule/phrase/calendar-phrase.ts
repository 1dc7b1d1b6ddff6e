/** Parses a phrase about a calendar period, such as "every 2 weeks on Mondays at 09:00, Europe/Berlin, counted from 2026-03-16". */
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { calendarPeriodOf } from "../calendar-interval.ts";
import type { CronFields } from "../cron.ts";
import { parseCron } from "../cron-parse.ts";
import { cronOfPhrase } from "./phrase.ts";

export interface PhrasePeriod {
  period: string;
  on?: (number | string)[];
  at: string[];
  anchor: string;
  monthEnd?: "skip";
  /** The zone in the phrase; null if the phrase names no zone. */
  zone: string | null;
}

const phraseForm =
  /^\s*every\s+(\d{1,5}|two|three|four|five|six|other|second|third|fourth)\s+(days?|weeks?|months?|quarters?|years?)\b(.*)$/is;
const anchorForm = /,?\s+(?:counted|starting|beginning)\s+(?:from|on)?\s*(\d{4}-\d\d-\d\d)\s*$/i;
const skipForm = /,\s*not in an? \w+ that lacks the day/i;
const clockForm = /\d{1,2}:\d\d(?::\d\d)?(?!\s*[ap]\.?m)/gi;
/** Matches a list of two or more times of day. */
const clocksForm = /(?:\d{1,2}:\d\d(?::\d\d)?(?:\s*,\s*(?:and\s+)?|\s+and\s+))+\d{1,2}:\d\d(?::\d\d)?(?!\s*[ap]\.?m)/i;
const numbers: { [word: string]: number } = {
  two: 2,
  other: 2,
  second: 2,
  three: 3,
  third: 3,
  four: 4,
  fourth: 4,
  five: 5,
  six: 6,
};
const codes = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const most = 31;

/** @returns null if the phrase is not about a calendar period @throws CRON_INVALID if the phrase has no meaning or two possible meanings */
export function periodOfPhrase(phrase: string): PhrasePeriod | null {
  const [, count = "", unit = "", said = ""] = (phrase.length <= limits.phraseLength && phraseForm.exec(phrase)) || [];
  const period = calendarPeriodOf(`${numbers[count.toLowerCase()] ?? count} ${unit}`);
  if (period === null) return null;
  const refuse = (why: string, hint: string) =>
    new CarillonError("CRON_INVALID", `${JSON.stringify(phrase)}: ${why}`, { hint });
  const anchor = anchorForm.exec(said)?.[1];
  if (anchor === undefined)
    throw refuse(
      `it does not say which ${period.unit} is the first`,
      `Add a day of one: "${phrase.trim().slice(0, 100)}, counted from 2026-01-05".`,
    );
  const rest = said
    .replace(anchorForm, "")
    .replace(skipForm, "")
    .replace(/^[\s,]+/, "");
  // The rest of the phrase is parsed as a cron phrase. A cron has the same minutes for all its hours. If the phrase lists several
  // times of day, only the first time is therefore passed on, and the list is used for the result.
  const [clocks = ""] = clocksForm.exec(rest) ?? [];
  const listed = clocks.match(clockForm) ?? [];
  const { expression, zone } = cronOfPhrase(rest === "" ? "every day at 00:00" : rest.replace(clocks, listed[0] ?? ""));
  const fields = parseCron(expression).fields;
  const on = daysOf(fields, period.unit);
  const at = listed.length > 1 ? listed : timesOf(fields);
  if (on === null || at === null)
    throw refuse(
      `its days or times are not of a ${period.unit}`,
      'For example "every 2 weeks on Mondays at 09:00, counted from 2026-01-05", "every 3 months on the last day at 09:00, counted from 2026-01-31".',
    );
  return {
    period: `${period.count} ${period.unit}`,
    ...(on.length === 0 ? {} : { on }),
    at,
    anchor,
    ...(skipForm.test(said) ? { monthEnd: "skip" } : {}),
    zone,
  };
}

const bits = (mask: number, count: number): number[] =>
  Array.from({ length: count }, (_, bit) => bit).filter((bit) => (mask >>> bit) & 1);

/** Converts the days of a cron to days of a period; returns null if a period of this unit cannot have these days. */
function daysOf(f: CronFields, unit: "day" | "week" | "month" | "year"): (number | string)[] | null {
  const days = bits(f.days, 31).map((day) => day + 1);
  const weekdays = bits(f.weekdays, 7);
  const months = bits(f.months, 12).map((month) => month + 1);
  const numbered = [
    ...(f.nth ?? []).flatMap((mask, nth) => bits(mask, 7).map((weekday) => `${codes[weekday]}#${nth + 1}`)),
    ...bits(f.lastWeekdays, 7).map((weekday) => `${codes[weekday]}L`),
  ];
  const hasOther = f.nearest !== 0 || f.lastNearest !== 0 || f.lastDays > 1 || f.years !== null;
  const anyDay = days.length === 31;
  const anyWeekday = weekdays.length === 7;
  if (hasOther || (unit !== "year" && months.length < 12)) return null;
  const dated = [...(anyDay ? [] : days), ...(f.lastDays === 1 ? ["last"] : [])];
  if (unit === "day") return dated.length === 0 && anyWeekday ? [] : null;
  if (unit === "week")
    return dated.length === 0 && numbered.length === 0 && !anyWeekday
      ? weekdays.map((day) => codes[day] as string)
      : null;
  if (unit === "month") {
    if (weekdays.length > 0 && !anyWeekday) return null;
    return [...dated, ...numbered].length === 0 ? null : [...dated, ...numbered];
  }
  if (anyDay || dated.includes("last") || !anyWeekday || months.length * days.length > most) return null;
  const two = (value: number) => String(value).padStart(2, "0");
  return months.flatMap((month) => days.map((day) => `${two(month)}-${two(day)}`));
}

/** Returns the times of day of a cron; null if there are too many to list. */
function timesOf(f: CronFields): string[] | null {
  const sixty = (low: number, high: number) => [...bits(low, 30), ...bits(high, 30).map((value) => value + 30)];
  const [hours, minutes, seconds] = [
    bits(f.hours, 24),
    sixty(f.minutesLow, f.minutesHigh),
    sixty(f.secondsLow, f.secondsHigh),
  ];
  if (hours.length * minutes.length * seconds.length > most) return null;
  return hours.flatMap((h) =>
    minutes.flatMap((m) => seconds.map((s) => [h, m, s].map((part) => String(part).padStart(2, "0")).join(":"))),
  );
}
