/**
 * A cron expression as bit masks, and the search for its next and previous match. Local times are encoded as the epoch milliseconds at
 * which a UTC clock shows them; `zoned-cron.ts` handles zones and daylight saving.
 * The search jumps field by field: months by a mask, days by one 31-bit mask per month, the time of day by masks. It never tests minute by
 * minute, and it ends at the last supported year, so an impossible date costs at most 12 × 231 months.
 */
import { limits } from "../base/limits.ts";

/** A parsed expression as bit masks. Seconds and minutes have two masks of 30 bits each, so that every mask fits into a small integer. */
export interface CronFields {
  /** Bit masks of the seconds 0–29 and 30–59. */
  secondsLow: number;
  secondsHigh: number;
  minutesLow: number;
  minutesHigh: number;
  hours: number;
  /** Bit 0 means the 1st of the month. */
  days: number;
  /** Bit n means the day that is n days before the month's last day. */
  lastDays: number;
  /** Bit n means the working day (Monday to Friday) nearest to day n + 1. */
  nearest: number;
  /** Bit n means the working day (Monday to Friday) nearest to the day that is n days before the month's last day. */
  lastNearest: number;
  /** Bit 0 means January. */
  months: number;
  /** Bit 0 means Sunday. */
  weekdays: number;
  /** Bit n means the last occurrence in the month of weekday n. */
  lastWeekdays: number;
  /** Element k is the mask of the weekdays given with `#k+1`; null if there are none. */
  nth: readonly number[] | null;
  /** Years in ascending order; null means every year. */
  years: readonly number[] | null;
  /**
   * True if neither day field begins with a star or `?`: a day must then match at least one of them. False: a day must match
   * both.
   */
  either: boolean;
  /** True if the expression has a field for seconds (6 or 7 fields). */
  withSeconds: boolean;
}

export const firstYear = 1970;
const dayMs = 86_400_000;

const low = (mask: number) => 31 - Math.clz32(mask & -mask);
const high = (mask: number) => 31 - Math.clz32(mask);
/** Keeps the bits of the mask from bit n upwards. */
const from = (mask: number, n: number) => (mask >>> n) << n;
/** Keeps the bits of the mask up to bit n, for n from 0 to 30. */
const upTo = (mask: number, n: number) => mask & (2 ** (n + 1) - 1);

const lowOfSixty = (a: number, b: number) => (a !== 0 ? low(a) : 30 + low(b));
const highOfSixty = (a: number, b: number) => (b !== 0 ? 30 + high(b) : high(a));
/** Returns the first set value ≥ n; −1 if there is none. */
function nextOfSixty(a: number, b: number, n: number): number {
  if (n < 30) {
    const rest = from(a, n);
    if (rest !== 0) return low(rest);
    return b === 0 ? -1 : 30 + low(b);
  }
  const rest = from(b, n - 30);
  return rest === 0 ? -1 : 30 + low(rest);
}
/** Returns the last set value ≤ n; −1 if there is none. */
function previousOfSixty(a: number, b: number, n: number): number {
  if (n >= 30) {
    const rest = upTo(b, n - 30);
    if (rest !== 0) return 30 + high(rest);
    return a === 0 ? -1 : high(a);
  }
  const rest = upTo(a, n);
  return rest === 0 ? -1 : high(rest);
}

const isLeap = (year: number) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
/** @param month 0 to 11 */
const lengthOfMonth = (year: number, month: number) =>
  month === 1 ? (isLeap(year) ? 29 : 28) : 30 + ((0b101011010101 >>> month) & 1);

/**
 * Returns the number of days from 1970-01-01 to a date of the Gregorian calendar, extended to all years. Years are counted from March, so
 * that a leap day is a year's last day.
 */
function daysTo(year: number, month: number, day: number): number {
  const y = month < 2 ? year - 1 : year;
  const m = month < 2 ? month + 10 : month - 2;
  const century = (y / 100) | 0;
  return 365 * y + (y >> 2) - century + (century >> 2) + (((153 * m + 2) / 5) | 0) + day - 719_469;
}

export class Cron {
  readonly fields: CronFields;
  // These two fields cache the matching days of the last queried month, because consecutive slots are mostly in the same month.
  #month = -1;
  #days = 0;

  constructor(fields: CronFields) {
    this.fields = fields;
  }

  /**
   * Returns the first match at or after a local time in whole seconds; Infinity if there is no match up to the last supported year.
   */
  nextLocal(local: number): number {
    const f = this.fields;
    let dayNumber = Math.floor(local / dayMs);
    let second = (local - dayNumber * dayMs) / 1000;
    const date = new Date(local);
    let year = date.getUTCFullYear();
    let month = date.getUTCMonth();
    let day = date.getUTCDate() - 1;
    for (;;) {
      if (f.years !== null) {
        const wanted = yearFrom(f.years, year);
        if (wanted !== year) {
          year = wanted;
          month = day = second = 0;
        }
      }
      if (year > limits.lastYear) return Number.POSITIVE_INFINITY;
      const months = from(f.months, month);
      if (months === 0) {
        year++;
        month = day = second = 0;
        continue;
      }
      if (low(months) !== month) {
        month = low(months);
        day = second = 0;
      }
      let days = from(this.#daysOf(year, month), day);
      while (days !== 0) {
        const match = low(days);
        const time = this.#timeFrom(match === day ? second : 0);
        if (time >= 0) {
          dayNumber = daysTo(year, month, match + 1);
          return dayNumber * dayMs + time * 1000;
        }
        days &= days - 1;
      }
      month++;
      day = second = 0;
      if (month === 12) {
        year++;
        month = 0;
      }
    }
  }

  /** Returns the last match at or before a local time in whole seconds; −Infinity if there is none since 1969. */
  previousLocal(local: number): number {
    const f = this.fields;
    const dayNumber = Math.floor(local / dayMs);
    let second = (local - dayNumber * dayMs) / 1000;
    const date = new Date(local);
    let year = date.getUTCFullYear();
    let month = date.getUTCMonth();
    let day = date.getUTCDate() - 1;
    for (;;) {
      if (f.years !== null) {
        const wanted = yearUpTo(f.years, year);
        if (wanted !== year) {
          year = wanted;
          month = 11;
          day = 30;
          second = 86_399;
        }
      }
      // The year 1969 is included, because west of Greenwich the first hours after the epoch are in 1969.
      if (year < firstYear - 1) return Number.NEGATIVE_INFINITY;
      const months = upTo(f.months, month);
      if (months === 0) {
        year--;
        month = 11;
        day = 30;
        second = 86_399;
        continue;
      }
      if (high(months) !== month) {
        month = high(months);
        day = 30;
        second = 86_399;
      }
      let days = upTo(this.#daysOf(year, month), day);
      while (days !== 0) {
        const match = high(days);
        const time = this.#timeUpTo(match === day ? second : 86_399);
        if (time >= 0) return daysTo(year, month, match + 1) * dayMs + time * 1000;
        days ^= 1 << match;
      }
      month--;
      day = 30;
      second = 86_399;
      if (month < 0) {
        year--;
        month = 11;
      }
    }
  }

  /** Returns the first matching second of the day that is ≥ `second`; −1 if there is none. */
  #timeFrom(second: number): number {
    const f = this.fields;
    const hour = (second / 3600) | 0;
    const minute = ((second - hour * 3600) / 60) | 0;
    const hours = from(f.hours, hour);
    if (hours === 0) return -1;
    const firstSecond = lowOfSixty(f.secondsLow, f.secondsHigh);
    let nextHour = low(hours);
    if (nextHour === hour) {
      const nextMinute = nextOfSixty(f.minutesLow, f.minutesHigh, minute);
      if (nextMinute === minute) {
        const nextSecond = nextOfSixty(f.secondsLow, f.secondsHigh, second % 60);
        if (nextSecond >= 0) return hour * 3600 + minute * 60 + nextSecond;
        const later = minute === 59 ? -1 : nextOfSixty(f.minutesLow, f.minutesHigh, minute + 1);
        if (later >= 0) return hour * 3600 + later * 60 + firstSecond;
      } else if (nextMinute >= 0) {
        return hour * 3600 + nextMinute * 60 + firstSecond;
      }
      const rest = from(f.hours, hour + 1);
      if (rest === 0) return -1;
      nextHour = low(rest);
    }
    return nextHour * 3600 + lowOfSixty(f.minutesLow, f.minutesHigh) * 60 + firstSecond;
  }

  /** Returns the last matching second of the day that is ≤ `second`; −1 if there is none. */
  #timeUpTo(second: number): number {
    const f = this.fields;
    const hour = (second / 3600) | 0;
    const minute = ((second - hour * 3600) / 60) | 0;
    const hours = upTo(f.hours, hour);
    if (hours === 0) return -1;
    const lastSecond = highOfSixty(f.secondsLow, f.secondsHigh);
    let previousHour = high(hours);
    if (previousHour === hour) {
      const previousMinute = previousOfSixty(f.minutesLow, f.minutesHigh, minute);
      if (previousMinute === minute) {
        const previousSecond = previousOfSixty(f.secondsLow, f.secondsHigh, second % 60);
        if (previousSecond >= 0) return hour * 3600 + minute * 60 + previousSecond;
        const earlier = minute === 0 ? -1 : previousOfSixty(f.minutesLow, f.minutesHigh, minute - 1);
        if (earlier >= 0) return hour * 3600 + earlier * 60 + lastSecond;
      } else if (previousMinute >= 0) {
        return hour * 3600 + previousMinute * 60 + lastSecond;
      }
      const rest = hour === 0 ? 0 : upTo(f.hours, hour - 1);
      if (rest === 0) return -1;
      previousHour = high(rest);
    }
    return previousHour * 3600 + highOfSixty(f.minutesLow, f.minutesHigh) * 60 + lastSecond;
  }

  #daysOf(year: number, month: number): number {
    const key = year * 12 + month;
    if (key !== this.#month) {
      this.#month = key;
      this.#days = daysOfMonth(this.fields, year, month);
    }
    return this.#days;
  }
}

function yearFrom(years: readonly number[], year: number): number {
  for (const wanted of years) if (wanted >= year) return wanted;
  return limits.lastYear + 1;
}

function yearUpTo(years: readonly number[], year: number): number {
  for (let i = years.length - 1; i >= 0; i--) if ((years[i] as number) <= year) return years[i] as number;
  return firstYear - 2;
}

/** Returns a mask of the matching days of one month, in which bit 0 means the 1st. */
function daysOfMonth(f: CronFields, year: number, month: number): number {
  const length = lengthOfMonth(year, month);
  const all = 2 ** length - 1;
  /** The weekday of the month's first day; 0 means Sunday. */
  const first = (((daysTo(year, month, 1) + 4) % 7) + 7) % 7;

  let days = f.days;
  for (let rest = f.lastDays; rest !== 0; rest &= rest - 1) {
    if (low(rest) < length) days |= 1 << (length - 1 - low(rest));
  }
  for (let rest = f.nearest; rest !== 0; rest &= rest - 1) {
    if (low(rest) < length) days |= 1 << nearestWeekday(low(rest), length, first);
  }
  for (let rest = f.lastNearest; rest !== 0; rest &= rest - 1) {
    if (low(rest) < length) days |= 1 << nearestWeekday(length - 1 - low(rest), length, first);
  }

  const week = ((f.weekdays >>> first) | (f.weekdays << (7 - first))) & 127;
  let byWeekday = week | (week << 7) | (week << 14) | (week << 21) | (week << 28);
  for (let rest = f.lastWeekdays; rest !== 0; rest &= rest - 1) {
    const earliest = (low(rest) - first + 7) % 7;
    byWeekday |= 1 << (earliest + 7 * (((length - 1 - earliest) / 7) | 0));
  }
  if (f.nth !== null) {
    for (let k = 0; k < f.nth.length; k++) {
      for (let rest = f.nth[k] as number; rest !== 0; rest &= rest - 1) {
        const day = ((low(rest) - first + 7) % 7) + 7 * k;
        if (day < length) byWeekday |= 1 << day;
      }
    }
  }
  return (f.either ? days | byWeekday : days & byWeekday) & all;
}

/**
 * Returns the working day (Monday to Friday) nearest to a day within its month. Days are counted from 0.
 * @param first the weekday of the month's first day
 */
function nearestWeekday(day: number, length: number, first: number): number {
  const weekday = (first + day) % 7;
  if (weekday === 6) return day === 0 ? 2 : day - 1;
  if (weekday === 0) return day === length - 1 ? day - 2 : day + 1;
  return day;
}
