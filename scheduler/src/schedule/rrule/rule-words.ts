/** Describes a rule in a sentence: its frequency, days, times of day, zone and exceptions. */
import { clock, list, monthNames, mostTimes, nth, ordinals, runs, weekdayNames } from "../in-words.ts";
import { dayMs, weekdayOf } from "../local-times.ts";
import type { Frequency, NthWeekday, Rule } from "./rule.ts";
import { ruleTime, ruleTimeText } from "./rule-time.ts";

const units: { [frequency in Frequency]: string } = {
  SECONDLY: "second",
  MINUTELY: "minute",
  HOURLY: "hour",
  DAILY: "day",
  WEEKLY: "week",
  MONTHLY: "month",
  YEARLY: "year",
};

interface Dates {
  start: string;
  zone: string;
  rdate?: string[];
  exdate?: string[];
}

/** Returns a description such as "every 2 weeks on Tuesdays at 09:00, Europe/Berlin, counted from 2026-01-06 09:00:00". */
export function ruleWords(rule: Rule, { start, zone, rdate = [], exdate = [] }: Dates): string {
  const { frequency, interval, until, count, positions, weekStart, weekNumbers } = rule;
  const startMs = ruleTime(start, "start", "start").ms;
  const often = interval === 1 ? `every ${units[frequency]}` : `every ${interval} ${units[frequency]}s`;
  const counts = interval > 1 || count !== null || !/DAILY|WEEKLY|MONTHLY|YEARLY/.test(frequency);
  const weeksCount = (frequency === "WEEKLY" && interval > 1) || weekNumbers !== null;
  const times = (many: number) => (many === 1 ? "1 time" : `${many} times`);
  return [
    [often, ...dayWords(rule, startMs), timeWords(rule, startMs)].filter((part) => part !== "").join(" "),
    ...(positions === null ? [] : [`of these only ${positionWords(positions)} in each ${units[frequency]}`]),
    zone,
    ...(weekStart !== 0 && weeksCount ? [`weeks begin on ${weekdayName(weekStart)}`] : []),
    ...(counts ? [`counted from ${start.replace("T", " ")}`] : []),
    ...(count === null ? [] : [count === 1 ? "once" : times(count)]),
    ...(until === null ? [] : [`until ${ruleTimeText(until).replace("T", " ")}`]),
    ...(rdate.length === 0 ? [] : [`and at ${times(rdate.length)} more`]),
    ...(exdate.length === 0 ? [] : [`without ${exdate.length} that ${exdate.length === 1 ? "is" : "are"} left out`]),
  ].join(", ");
}

const weekdayName = (weekday: number) => weekdayNames[(weekday + 1) % 7] as string;

function dayWords(rule: Rule, startMs: number): string[] {
  const { frequency, months, weekNumbers, yearDays, monthDays, weekdays } = rule;
  const startDay = startMs / dayMs;
  const date = new Date(startMs);
  const isBare = !months && !weekNumbers && !yearDays && !monthDays && !weekdays;
  if (isBare && frequency === "YEARLY") return [`on ${date.getUTCDate()} ${monthNames[date.getUTCMonth()]}`];
  const days: string[] = [];
  if (weekdays) days.push(weekdayWords(weekdays, frequency, months !== null));
  else if (frequency === "WEEKLY") days.push(`${weekdayName(weekdayOf(Math.floor(startDay)))}s`);
  if (monthDays) days.push(numberWords(monthDays, "day", "of the month"));
  else if (!weekdays && !weekNumbers && !yearDays && (frequency === "MONTHLY" || (frequency === "YEARLY" && months)))
    days.push(`day ${date.getUTCDate()} of the month`);
  if (yearDays) days.push(numberWords(yearDays, "day", "of the year"));
  if (weekNumbers) days.push(`days of ${numberWords(weekNumbers, "week", "of the year")}`);
  return [
    ...(days.length === 0 ? [] : [`on ${days.join(" that are also ")}`]),
    ...(months ? [`in ${runs(months, (month) => monthNames[month - 1] as string)}`] : []),
  ];
}

/** Describes weekdays, such as "weekdays", "Tuesdays and Fridays", or "the second Tuesday and the last Friday of the month". */
function weekdayWords(weekdays: readonly NthWeekday[], frequency: Frequency, hasMonths: boolean): string {
  const plain = weekdays.filter(({ nth: number }) => number === 0).map(({ weekday }) => weekday);
  const isWeekdays = plain.length === 5 && plain.every((weekday) => weekday < 5);
  const numbered = weekdays.filter(({ nth: number }) => number !== 0);
  const words = isWeekdays ? ["weekdays"] : plain.map((weekday) => `${weekdayName(weekday)}s`);
  for (const { weekday, nth: number } of numbered) words.push(`the ${place(number)} ${weekdayName(weekday)}`);
  const whole = frequency === "YEARLY" && !hasMonths ? "year" : "month";
  return numbered.length === 0 ? list(words) : `${list(words)} of the ${whole}`;
}

/** Describes a position, such as "first", "12th", "last" or "second to last". */
function place(number: number): string {
  const ordinal = (at: number) => ordinals[at - 1] ?? nth(at);
  return number > 0 ? ordinal(number) : number === -1 ? "last" : `${ordinal(-number)} to last`;
}

/** Describes numbers of days or weeks, such as "days 1 to 7 and the last day of the month". */
function numberWords(numbers: readonly number[], unit: string, whole: string): string {
  const ahead = numbers.filter((number) => number > 0);
  const back = numbers.filter((number) => number < 0).toReversed();
  const plain = ahead.length === 0 ? [] : [`${unit}${ahead.length === 1 ? "" : "s"} ${runs(ahead, String)}`];
  return `${list([...plain, ...back.map((number) => `the ${place(number)} ${unit}`)])} ${whole}`;
}

const positionWords = (positions: readonly number[]) =>
  list(positions.toSorted((a, b) => Math.sign(b) - Math.sign(a) || a - b).map((number) => `the ${place(number)}`));

function timeWords(rule: Rule, startMs: number): string {
  const { frequency, hours, minutes, seconds } = rule;
  const date = new Date(startMs);
  const named = (name: string, values: readonly number[] | null) =>
    values === null ? [] : [`${name}${values.length === 1 ? "" : "s"} ${runs(values, String)}`];
  if (frequency === "SECONDLY" || frequency === "MINUTELY" || frequency === "HOURLY") {
    const within = frequency === "HOURLY" ? (minutes ?? [date.getUTCMinutes()]) : minutes;
    const parts = [...named("second", seconds), ...named("minute", within), ...named("hour", hours)];
    return parts.length === 0 ? "" : `at ${parts.join(" of ")}`;
  }
  const all = {
    hours: hours ?? [date.getUTCHours()],
    minutes: minutes ?? [date.getUTCMinutes()],
    seconds: seconds ?? [date.getUTCSeconds()],
  };
  if (all.hours.length * all.minutes.length * all.seconds.length <= mostTimes)
    return `at ${list(all.hours.flatMap((h) => all.minutes.flatMap((m) => all.seconds.map((s) => clock(h, m, s)))))}`;
  const isOnMinute = all.seconds.length === 1 && all.seconds[0] === 0;
  const parts = [...(isOnMinute ? [] : named("second", all.seconds)), ...named("minute", all.minutes)];
  return `at ${[...parts, ...named("hour", all.hours)].join(" of ")}`;
}
