/** Formats sets of values as a short cron expression in the usual notation; the inverse of cron-parse.ts. */
import { limits } from "../base/limits.ts";

export interface DayChoice {
  /** Days from 1 to 31. */
  days: number[];
  /** Special items such as "L", "L-3", "15W", "LW" or "L-3W". */
  special: string[];
}

export interface WeekdayChoice {
  /** Weekdays from 0 (Sunday) to 6. */
  days: number[];
  /** Special items such as "FRI#2" or "FRIL". */
  special: string[];
}

export interface CronSets {
  seconds: number[];
  minutes: number[];
  hours: number[];
  /** null means any day. */
  day: DayChoice | null;
  weekday: WeekdayChoice | null;
  /** How the two day fields are combined: "or" matches days that match either field, "and" days that match both. */
  join: "or" | "and";
  /** Months from 1 to 12. */
  months: number[];
  years: number[] | null;
}

const weekdayNames = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/**
 * Formats the sets.
 * @returns null if no cron expression matches exactly these days. A cron expression matches days that match either day field; it
 * requires that both day fields match only if one of them begins with a star
 */
export function cronText(sets: CronSets): string | null {
  const text = textOf(sets);
  if (text === null || text.length <= limits.cronTextLength) return text;
  // Overlapping steps give long lists of values: the years "*/2,*/3" are 154 numbers. Long lists are therefore written as steps.
  const [seconds, minutes, hours, day, months, weekday, years] = text.split(" ");
  const packed = (values: number[], usual = "*") =>
    values.length > 9 && /^[\d,-]+$/.test(usual) ? inSteps(values) : usual;
  return [
    packed(sets.seconds, seconds),
    packed(sets.minutes, minutes),
    packed(sets.hours, hours),
    day,
    months,
    weekday,
    ...(sets.years === null ? [] : [packed(sets.years, years)]),
  ].join(" ");
}

function textOf(sets: CronSets): string | null {
  const { day, weekday, join } = sets;
  let dayField = day === null ? "*" : field([...day.days], 1, 31, day.special);
  let weekdayField = weekday === null ? "*" : weekdaysField(weekday);
  if (day !== null && weekday !== null) {
    const steps = [starred(day.days, 1, 31), starred(weekday.days, 0, 6)] as const;
    if (join === "or") {
      dayField = listed([...day.days], day.special);
      weekdayField = weekdaysField(weekday);
    } else if (steps[0] !== null) dayField = [steps[0], ...day.special].join(",");
    else if (steps[1] !== null) weekdayField = [steps[1], ...weekday.special].join(",");
    else return null;
  } else if (day !== null && dayField === "*") dayField = "1-31";
  const minutes = [
    field(sets.minutes, 0, 59),
    field(sets.hours, 0, 23),
    dayField,
    field(sets.months, 1, 12),
    weekdayField,
  ];
  const seconds = field(sets.seconds, 0, 59);
  if (sets.years !== null) return [seconds, ...minutes, listed(sets.years, [])].join(" ");
  return seconds === "0" ? minutes.join(" ") : [seconds, ...minutes].join(" ");
}

function field(values: number[], first: number, last: number, special: string[] = []): string {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  if (special.length === 0) {
    if (sorted.length === last - first + 1) return "*";
    const step = stepOf(sorted, first, last);
    if (step) return step;
    const by = (sorted[1] ?? 0) - (sorted[0] ?? 0);
    const even = sorted.every((value, at) => at === 0 || value - (sorted[at - 1] as number) === by);
    if (sorted.length > 3 && by > 1 && even) return `${sorted[0]}-${sorted.at(-1)}/${by}`;
  }
  return listed(sorted, special);
}

/** Returns a star with a step if the values are exactly the steps through the whole field from its first value; else null. */
function stepOf(values: readonly number[], first: number, last: number): string | null {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const by = (sorted[1] ?? 0) - (sorted[0] ?? 0);
  if (by < 2 || sorted[0] !== first || (sorted.at(-1) as number) + by <= last) return null;
  return sorted.every((value, at) => value === first + at * by) ? `*/${by}` : null;
}

/**
 * Writes the days as a field that begins with a star, so that a cron expression requires the other day field to match too.
 * @returns null if the days contain no step through the whole field
 */
function starred(values: readonly number[], first: number, last: number): string | null {
  for (let by = 2; by < last - first + 1; by++) {
    const steps = Array.from({ length: Math.floor((last - first) / by) + 1 }, (_, at) => first + at * by);
    const rest = values.filter((value) => !steps.includes(value));
    if (steps.every((value) => values.includes(value)))
      return rest.length === 0 ? `*/${by}` : `*/${by},${listed(rest, [])}`;
  }
  return null;
}

function listed(values: number[], special: string[]): string {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const items: string[] = [];
  for (let at = 0; at < sorted.length; ) {
    let end = at;
    while (end + 1 < sorted.length && sorted[end + 1] === (sorted[end] as number) + 1) end++;
    if (end - at >= 2) items.push(`${sorted[at]}-${sorted[end]}`);
    else for (let one = at; one <= end; one++) items.push(String(sorted[one]));
    at = end + 1;
  }
  return [...items, ...special].join(",");
}

/** Writes the values as a few steps, choosing the step that covers most remaining values first. Steps may overlap. */
function inSteps(values: readonly number[]): string {
  const all = new Set(values);
  const left = new Set(values);
  const items: string[] = [];
  while (left.size > 0) {
    let best = { from: Math.min(...left), by: 1, to: Math.min(...left), news: 1 };
    for (const from of all)
      for (let by = 1; by <= 128; by++) {
        let to = from;
        let news = left.has(from) ? 1 : 0;
        for (; all.has(to + by); to += by) if (left.has(to + by)) news++;
        if (news > best.news) best = { from, by, to, news };
      }
    const { from, by, to } = best;
    for (let value = from; value <= to; value += by) left.delete(value);
    items.push(from === to ? `${from}` : by === 1 ? `${from}-${to}` : `${from}-${to}/${by}`);
  }
  return items.join(",");
}

function weekdaysField({ days, special }: WeekdayChoice): string {
  const sorted = [...new Set(days)].sort((a, b) => a - b);
  if (sorted.length === 7 && special.length === 0) return "0-6";
  const isRun = sorted.length > 2 && (sorted.at(-1) as number) - (sorted[0] as number) === sorted.length - 1;
  const names = sorted.map((day) => weekdayNames[day] as string);
  return [...(isRun ? [`${names[0]}-${names.at(-1)}`] : names), ...special].join(",");
}
