/**
 * Describes a schedule in English. The description is made from bit masks instead of the expression's text, so that a step and a
 * list of the same values give the same sentence. Every expression can be described; common expressions get an idiomatic
 * sentence.
 */

import { formatDuration } from "../base/duration.ts";
import type { CronFields } from "./cron.ts";

export const monthNames = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
export const weekdayNames = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
export const ordinals = ["first", "second", "third", "fourth", "fifth"];
const allDays = 2 ** 31 - 1;
const allWeekdays = 127;
const allMonths = 2 ** 12 - 1;
/** Up to this number of times of day are listed one by one. */
export const mostTimes = 6;

/** Returns a description such as "at 00:00 on weekdays, Asia/Shanghai". */
export function cronWords(f: CronFields, zone: string): string {
  const time = timeWords(f);
  const days = dayWords(f, time.startsWith("at ") && !/ of every (hour|minute)$/.test(time));
  const years = f.years === null ? "" : `in ${runs(f.years, (year) => `${year}`)}`;
  return `${[time, days, years].filter((part) => part !== "").join(" ")}, ${zone}`;
}

/** Returns a description such as "every 5 minutes", or "5 minutes after the end of the last run". */
export function everyWords(everyMs: number, mode: "rate" | "delay"): string {
  const units = [
    [604_800_000, "week"],
    [86_400_000, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
    [1000, "second"],
  ] as const;
  const unit = units.find(([size]) => everyMs % size === 0);
  const count = unit === undefined ? 0 : everyMs / unit[0];
  const text = unit === undefined ? formatDuration(everyMs) : count === 1 ? unit[1] : `${count} ${unit[1]}s`;
  if (mode === "rate") return `every ${text}`;
  return `${count === 1 ? "1 " : ""}${text} after the end of the last run`;
}

function timeWords(f: CronFields): string {
  const seconds = bits(f.secondsLow).concat(bits(f.secondsHigh).map((value) => value + 30));
  const minutes = bits(f.minutesLow).concat(bits(f.minutesHigh).map((value) => value + 30));
  const hours = bits(f.hours);
  const second = seconds.length === 1 ? (seconds[0] as number) : -1;
  const minute = minutes.length === 1 ? (minutes[0] as number) : -1;

  if (second >= 0 && hours.length * minutes.length <= mostTimes && hours.length < 24) {
    return `at ${list(hours.flatMap((h) => minutes.map((m) => clock(h, m, second))))}`;
  }
  if (second >= 0 && minute >= 0) {
    if (hours.length === 24) {
      if (second === 0) return minute === 0 ? "every hour" : `at minute ${minute} of every hour`;
      return `at minute ${minute}, second ${second} of every hour`;
    }
    const range = wrapped(hours, 24);
    if (range !== null)
      return `every hour from ${clock(range[0], minute, second)} to ${clock(range[1], minute, second)}`;
    const step = progression(hours, 24);
    if (step?.even) {
      const first = clock(hours[0] as number, minute, second);
      return first === "00:00" ? `every ${step.by} hours` : `every ${step.by} hours from ${first}`;
    }
    return `at ${list(hours.map((h) => clock(h, minute, second)))}`;
  }

  let base: string;
  if (second === 0) base = pulse(minutes, "minute");
  else if (minutes.length === 60)
    base = pulse(seconds, "second") + (seconds.length === 60 || isPlain(seconds) ? "" : " of every minute");
  else base = `${pulse(seconds, "second")} of ${named(minutes, "minute")}`;
  if (hours.length === 24)
    return base.startsWith("every") && !base.includes(" of ") && !base.includes(" from ") ? base : ofEveryHour(base);
  const range = wrapped(hours, 24);
  if (range !== null && !base.includes(" from ") && base.startsWith("every ") && !base.includes(" of ")) {
    return `${base} from ${clock(range[0], 0, 0)} to ${clock(range[1], 59, f.withSeconds && second < 0 ? 59 : 0)}`;
  }
  return `${base} of ${named(hours, "hour")}`;
}

const ofEveryHour = (base: string) => (base.endsWith(" of every minute") ? base : `${base} of every hour`);

/** Describes how often within an hour or a minute, such as "every 5 minutes" or "at minutes 5 and 17". */
function pulse(values: readonly number[], unit: string): string {
  if (values.length === 60) return `every ${unit}`;
  const step = values.length > 2 ? progression(values, 60) : null;
  if (values.length === 2 && isPlain(values)) return `every 30 ${unit}s`;
  if (step === null) return `at ${named(values, unit)}`;
  const start = values[0] as number;
  return step.even && start === 0 ? `every ${step.by} ${unit}s` : `every ${step.by} ${unit}s from ${unit} ${start}`;
}

/** Describes values of a unit, such as "minute 5", "minutes 5 and 17", "hours 9 to 17" or "every 2nd hour from 1". */
function named(values: readonly number[], unit: string): string {
  const cycle = unit === "hour" ? 24 : 60;
  if (values.length === cycle) return `every ${unit}`;
  if (values.length === 1) return `${unit} ${values[0]}`;
  const step = values.length > 3 ? progression(values, cycle) : null;
  if (step !== null) return `every ${nth(step.by)} ${unit} from ${values[0]}`;
  const range = wrapped(values, cycle);
  if (range !== null && values.length > 2) return `${unit}s ${range[0]} to ${range[1]}`;
  return `${unit}s ${runs(values, (value) => `${value}`)}`;
}

/** @param pointed true if the description has times of day, so that even unrestricted days must be described, as "every day" */
function dayWords(f: CronFields, pointed: boolean): string {
  const months = f.months === allMonths ? "" : runs(bits(f.months), (month) => monthNames[month] as string);
  // If a day must match only one of the two fields, a field that contains all its days makes every day match.
  const everyDay = f.either && (f.days === allDays || f.weekdays === allWeekdays);
  const anyDay = everyDay || f.days === allDays;
  const anyWeekday = everyDay || f.weekdays === allWeekdays;
  const inMonths = months === "" ? "" : ` in ${months}`;
  const weekdays = anyWeekday ? "" : weekdayWords(f, months);
  if (anyDay && anyWeekday) return `${pointed ? "every day" : ""}${inMonths}`.trim();
  if (anyDay) return `on ${weekdays}${weekdays.endsWith(months) && months !== "" ? "" : inMonths}`;
  const days = dateWords(f, months);
  if (anyWeekday) return `on ${days}`;
  return f.either
    ? `on ${days} or on ${weekdays}${weekdays.endsWith(months) ? "" : inMonths}`
    : `on ${days}, only on ${weekdays}`;
}

/**
 * Describes days of the month, such as "1 January", "day 1 of the month", "days 1 and 15 of June and July" or "the last day of the month".
 */
function dateWords(f: CronFields, months: string): string {
  const days = bits(f.days);
  const special: string[] = [];
  for (const n of bits(f.lastDays)) special.push(n === 0 ? "the last day" : `the ${nth(n)} day before the last day`);
  for (const n of bits(f.nearest)) special.push(`the weekday nearest to day ${n + 1}`);
  for (const n of bits(f.lastNearest)) {
    special.push(n === 0 ? "the last weekday" : `the weekday nearest to the ${nth(n)} day before the last day`);
  }
  const date = (day: number) => `${day + 1}`;
  if (special.length === 0 && monthNames.includes(months)) return `${runs(days, date)} ${months}`;
  const step = days.length > 3 ? progression(days, 31) : null;
  const plain =
    days.length === 0
      ? []
      : step !== null
        ? [`every ${nth(step.by)} day from day ${date(days[0] as number)}`]
        : [`${days.length === 1 ? "day" : "days"} ${runs(days, date)}`];
  return `${list([...plain, ...special])} of ${months === "" ? "the month" : months}`;
}

/** Describes weekdays, such as "weekdays", "Mondays and Fridays" or "the last Friday of the month". */
function weekdayWords(f: CronFields, months: string): string {
  const days = bits(f.weekdays);
  const plain: string[] = [];
  const range = wrapped(days, 7);
  const name = (day: number) => `${weekdayNames[day]}s`;
  if (f.weekdays === 0b0111110) plain.push("weekdays");
  else if (f.weekdays === 0b1000001) plain.push("weekends");
  else if (range !== null && days.length > 2) plain.push(`${name(range[0])} to ${name(range[1])}`);
  else plain.push(...days.map(name));
  const special: string[] = [];
  f.nth?.forEach((mask, k) => {
    for (const day of bits(mask)) special.push(`the ${ordinals[k]} ${weekdayNames[day]}`);
  });
  for (const day of bits(f.lastWeekdays)) special.push(`the last ${weekdayNames[day]}`);
  if (special.length === 0) return list(plain);
  return `${list([...plain, ...special])} of ${months === "" ? "the month" : months}`;
}

function bits(mask: number): number[] {
  const values: number[] = [];
  for (let value = 0; value < 31; value++) if ((mask >>> value) & 1) values.push(value);
  return values;
}

export function clock(hour: number, minute: number, second: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(hour)}:${two(minute)}${second === 0 ? "" : `:${two(second)}`}`;
}

export function list(items: readonly string[]): string {
  if (items.length < 2) return items[0] ?? "";
  return `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`;
}

/** Lists values, such as "1, 5 and 10 to 14"; three or more consecutive values become a range. */
export function runs(values: readonly number[], name: (value: number) => string): string {
  const items: string[] = [];
  for (let i = 0; i < values.length; ) {
    let j = i;
    while (values[j + 1] === (values[j] as number) + 1) j++;
    if (j - i >= 2) items.push(`${name(values[i] as number)} to ${name(values[j] as number)}`);
    else for (let k = i; k <= j; k++) items.push(name(values[k] as number));
    i = j + 1;
  }
  return list(items);
}

/** Returns the first and last of consecutive values, which may wrap around the end of the cycle; null if the values are not consecutive. */
function wrapped(values: readonly number[], cycle: number): [number, number] | null {
  if (values.length === 0 || values.length === cycle) return null;
  const starts = values.filter((value) => !values.includes((value + cycle - 1) % cycle));
  if (starts.length !== 1) return null;
  const start = starts[0] as number;
  return [start, (start + values.length - 1) % cycle];
}

/**
 * Returns the step if the values have equal distances of 2 or more up to the end of the cycle, such as those of a/n in a cron;
 * else null. `even` is true if the distance across the end of the cycle equals the step.
 */
function progression(values: readonly number[], cycle: number): { by: number; even: boolean } | null {
  const by = (values[1] ?? 0) - (values[0] ?? 0);
  if (by < 2) return null;
  for (let i = 1; i < values.length; i++) if ((values[i] as number) - (values[i - 1] as number) !== by) return null;
  if ((values[0] as number) >= by + (cycle === 31 ? 1 : 0) || (values[values.length - 1] as number) + by < cycle)
    return null;
  return { by, even: cycle % by === 0 };
}

const isPlain = (values: readonly number[]) => values[0] === 0 && (progression(values, 60)?.even ?? false);

/** Returns an ordinal number such as "3rd". */
export function nth(n: number): string {
  const tail = n % 100 >= 11 && n % 100 <= 13 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${tail}`;
}
