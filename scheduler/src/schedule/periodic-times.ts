/**
 * Local times at certain times of day, on certain days of every n-th day, week, month or year.
 * The search computes which period contains a local time, and continues from there in steps of n periods. It examines no period between the
 * anchor and that time, and ends at the last supported year.
 */
import { dayMs, dayOf, firstDay, type LocalTimes, lastDay, lowerBound, mod, weekdayOf } from "./local-times.ts";

export type PeriodUnit = "day" | "week" | "month" | "year";

export interface Periods {
  unit: PeriodUnit;
  /** Every `count`-th period has times; the others have none. */
  count: number;
  /** A day number in any of the periods that have times. */
  anchorDay: number;
  /** The first day of a week; 0 is Monday. */
  weekStart: number;
}

/**
 * Returns the day numbers in a period that have times, ascending.
 * @param first the first day of the period
 * @param end the day after its last day
 */
export type DaysOf = (first: number, end: number) => number[];

export class PeriodicTimes implements LocalTimes {
  readonly #periods: Periods;
  readonly #anchor: number;
  readonly #daysOf: DaysOf;
  /** Times of day in seconds, ascending; there is at least one. */
  readonly #times: readonly number[];
  /** The positions of a period's times that are used: 1 is the first, −1 the last. null: all times are used. */
  readonly #positions: readonly number[] | null;
  // These fields cache the last period that was computed, because consecutive slots are mostly in the same period.
  #read = Number.NaN;
  #days: number[] = [];
  #picked: number[] = [];

  constructor(periods: Periods, daysOf: DaysOf, times: readonly number[], positions: readonly number[] | null = null) {
    this.#periods = periods;
    this.#daysOf = daysOf;
    this.#times = times;
    this.#positions = positions;
    this.#anchor = this.#periodOf(periods.anchorDay);
  }

  nextLocal(local: number): number {
    const { count } = this.#periods;
    const period = this.#periodOf(Math.floor(local / dayMs));
    for (let at = period + mod(this.#anchor - period, count); this.#firstDayOf(at) <= lastDay; at += count) {
      const found = this.#positions === null ? this.#firstIn(at, local) : this.#firstPicked(at, local);
      if (found !== undefined) return found;
    }
    return Number.POSITIVE_INFINITY;
  }

  previousLocal(local: number): number {
    const { count } = this.#periods;
    const period = this.#periodOf(Math.floor(local / dayMs));
    for (let at = period - mod(period - this.#anchor, count); this.#firstDayOf(at + 1) > firstDay; at -= count) {
      const found = this.#positions === null ? this.#lastIn(at, local) : this.#lastPicked(at, local);
      if (found !== undefined) return found;
    }
    return Number.NEGATIVE_INFINITY;
  }

  #firstIn(period: number, local: number): number | undefined {
    this.#readPeriod(period);
    const day = Math.floor(local / dayMs);
    let at = lowerBound(this.#days, day);
    if (this.#days[at] === day) {
      const time = this.#times[lowerBound(this.#times, (local - day * dayMs) / 1000)];
      if (time !== undefined) return day * dayMs + time * 1000;
      at++;
    }
    const later = this.#days[at];
    return later === undefined ? undefined : later * dayMs + (this.#times[0] as number) * 1000;
  }

  #lastIn(period: number, local: number): number | undefined {
    this.#readPeriod(period);
    const day = Math.floor(local / dayMs);
    const at = lowerBound(this.#days, day);
    if (this.#days[at] === day) {
      const time = this.#times[lowerBound(this.#times, (local - day * dayMs) / 1000 + 1) - 1];
      if (time !== undefined) return day * dayMs + time * 1000;
    }
    const earlier = this.#days[at - 1];
    return earlier === undefined ? undefined : earlier * dayMs + (this.#times.at(-1) as number) * 1000;
  }

  #firstPicked(period: number, local: number): number | undefined {
    this.#readPeriod(period);
    return this.#picked[lowerBound(this.#picked, local)];
  }

  #lastPicked(period: number, local: number): number | undefined {
    this.#readPeriod(period);
    return this.#picked[lowerBound(this.#picked, local + 1) - 1];
  }

  #readPeriod(period: number): void {
    if (period === this.#read) return;
    this.#read = period;
    this.#days = this.#daysOf(this.#firstDayOf(period), this.#firstDayOf(period + 1));
    if (this.#positions === null) return;
    const many = this.#times.length;
    const all = this.#days.length * many;
    const picked = this.#positions.map((position) => (position < 0 ? all + position : position - 1));
    this.#picked = [...new Set(picked)]
      .filter((at) => at >= 0 && at < all)
      .map((at) => (this.#days[Math.floor(at / many)] as number) * dayMs + (this.#times[at % many] as number) * 1000)
      .sort((a, b) => a - b);
  }

  #periodOf(day: number): number {
    const { unit, weekStart } = this.#periods;
    if (unit === "day") return day;
    if (unit === "week") return Math.floor((day - mondayOfEpoch - weekStart) / 7);
    const date = new Date(day * dayMs);
    return unit === "year" ? date.getUTCFullYear() : date.getUTCFullYear() * 12 + date.getUTCMonth();
  }

  #firstDayOf(period: number): number {
    const { unit, weekStart } = this.#periods;
    if (unit === "day") return period;
    if (unit === "week") return period * 7 + mondayOfEpoch + weekStart;
    return unit === "year" ? dayOf(period, 0, 1) : dayOf(Math.floor(period / 12), mod(period, 12), 1);
  }
}

/** The day number of Monday, 5 January 1970. */
const mondayOfEpoch = 4 - weekdayOf(4);
