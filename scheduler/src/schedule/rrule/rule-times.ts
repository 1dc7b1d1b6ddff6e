/**
 * Computes the local times of a rule from its start. If BY parts are missing, their values come from the start, as RFC 5545
 * requires.
 */
import { dayMs, type LocalTimes, weekdayOf } from "../local-times.ts";
import { PeriodicTimes, type PeriodUnit } from "../periodic-times.ts";
import { GridTimes } from "./grid-times.ts";
import type { Frequency, Rule } from "./rule.ts";
import { type DayParts, dayMatcher } from "./rule-days.ts";

const periodUnits: { [frequency in Frequency]?: PeriodUnit } = {
  DAILY: "day",
  WEEKLY: "week",
  MONTHLY: "month",
  YEARLY: "year",
};

/** The length in seconds of the frequencies shorter than a day. */
export const gridSeconds: { [frequency in Frequency]?: number } = { SECONDLY: 1, MINUTELY: 60, HOURLY: 3600 };

/**
 * Returns the local times of a rule. An UNTIL that is an instant is not applied, because it depends on the zone.
 * @param start a local time
 */
export function ruleTimes(rule: Rule, start: number): LocalTimes {
  const base = unboundedTimes(rule, start);
  const { until, count } = rule;
  let last = until === null || until.kind === "instant" ? Number.POSITIVE_INFINITY : until.ms;
  if (until?.kind === "day") last += dayMs - 1000;
  if (count !== null) {
    last = base.nextLocal(start);
    // If `last` becomes Infinity, the rule has fewer times than COUNT says.
    for (let more = count - 1; more > 0 && last < Number.POSITIVE_INFINITY; more--) last = base.nextLocal(last + 1000);
  }
  return new TimesBetween(base, start, last);
}

function unboundedTimes(rule: Rule, start: number): LocalTimes {
  const { frequency, interval, weekStart, positions } = rule;
  const startDay = Math.floor(start / dayMs);
  const second = (start - startDay * dayMs) / 1000;
  const [hour, minute] = [Math.floor(second / 3600), Math.floor(second / 60) % 60];
  const gridUnit = gridSeconds[frequency];
  const matches = dayMatcher(dayParts(rule, startDay), frequency === "YEARLY" && !rule.months ? "year" : "month");
  const minutes = rule.minutes ?? [minute];
  const seconds = rule.seconds ?? [second % 60];
  if (gridUnit !== undefined) {
    const within = frequency === "HOURLY" ? product([0], minutes, seconds) : frequency === "MINUTELY" ? seconds : [0];
    return new GridTimes({
      unitSeconds: gridUnit,
      count: interval,
      origin: Math.floor(start / 1000 / gridUnit),
      matches,
      hours: rule.hours,
      minutes: frequency === "HOURLY" ? null : rule.minutes,
      seconds: frequency === "SECONDLY" ? rule.seconds : null,
      offsets: positions === null ? within : chosen(within, positions),
    });
  }
  const periods = { unit: periodUnits[frequency] as PeriodUnit, count: interval, anchorDay: startDay, weekStart };
  const daysOf = (first: number, end: number) => {
    const days: number[] = [];
    for (let day = first; day < end; day++) if (matches(day)) days.push(day);
    return days;
  };
  return new PeriodicTimes(periods, daysOf, product(rule.hours ?? [hour], minutes, seconds), positions);
}

function dayParts(rule: Rule, startDay: number): DayParts {
  const { frequency, weekdays, monthDays, yearDays, weekNumbers, months } = rule;
  if (weekdays || monthDays || yearDays || weekNumbers) return rule;
  const date = new Date(startDay * dayMs);
  if (frequency === "WEEKLY") return { ...rule, weekdays: [{ weekday: weekdayOf(startDay), nth: 0 }] };
  if (frequency === "MONTHLY") return { ...rule, monthDays: [date.getUTCDate()] };
  if (frequency === "YEARLY")
    return { ...rule, months: months ?? [date.getUTCMonth() + 1], monthDays: [date.getUTCDate()] };
  return rule;
}

/** Returns all combinations as times of day in seconds, ascending. */
const product = (hours: readonly number[], minutes: readonly number[], seconds: readonly number[]): number[] =>
  hours.flatMap((hour) => minutes.flatMap((minute) => seconds.map((second) => (hour * 60 + minute) * 60 + second)));

const chosen = (values: readonly number[], positions: readonly number[]): number[] =>
  values.filter((_, at) => positions.includes(at + 1) || positions.includes(at - values.length));

class TimesBetween implements LocalTimes {
  readonly #base: LocalTimes;
  readonly #first: number;
  readonly #last: number;
  constructor(base: LocalTimes, first: number, last: number) {
    this.#base = base;
    this.#first = first;
    this.#last = last;
  }
  nextLocal(local: number): number {
    if (local > this.#last) return Number.POSITIVE_INFINITY;
    const next = this.#base.nextLocal(Math.max(local, this.#first));
    return next > this.#last ? Number.POSITIVE_INFINITY : next;
  }
  previousLocal(local: number): number {
    if (local < this.#first) return Number.NEGATIVE_INFINITY;
    const previous = this.#base.previousLocal(Math.min(local, this.#last));
    return previous < this.#first ? Number.NEGATIVE_INFINITY : previous;
  }
}

/** True if every hour of a matching day has times. Such a rule is about elapsed time, not about times of day. */
export const coversAllHours = ({ frequency, interval, hours }: Rule): boolean =>
  hours === null && (gridSeconds[frequency] ?? Number.POSITIVE_INFINITY) * interval <= 3600;
