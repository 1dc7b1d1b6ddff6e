/** Dates and times of day without a zone. Local times are encoded as the epoch milliseconds at which a UTC clock shows them. */
import { limits } from "../base/limits.ts";

/** The local times at which a schedule has slots; its zone converts them to instants afterwards. */
export interface LocalTimes {
  /** Returns the first match at or after a local time in whole seconds; Infinity if there is none. */
  nextLocal(local: number): number;
  /** Returns the last match at or before a local time in whole seconds; −Infinity if there is none. */
  previousLocal(local: number): number;
}

export const dayMs = 86_400_000;

/**
 * The day number, counted from 1970-01-01, at which every search ends. It is beyond the last UTC day, because some zones are
 * ahead of UTC.
 */
export const lastDay = Date.UTC(limits.lastYear + 1, 0, 1) / dayMs + 1;
/** The first day number of searches. It is long before any slot, because a recurrence may begin before its first slot. */
export const firstDay = Date.UTC(1900, 0, 1) / dayMs;

export const mod = (value: number, by: number) => ((value % by) + by) % by;

/** Returns the number of days from 1970-01-01 to a date. @param month 0 to 11 */
export const dayOf = (year: number, month: number, day: number): number => Date.UTC(year, month, day) / dayMs;

/** Returns the weekday of a day number; 0 is Monday, as in ISO 8601 and RFC 5545. */
export const weekdayOf = (day: number): number => mod(day + 3, 7);

/** Returns the index of the first value that is at least `wanted`; the list's length if there is none. */
export function lowerBound(sorted: readonly number[], wanted: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const sortedUnique = (values: Iterable<number>): number[] => [...new Set(values)].sort((a, b) => a - b);

/** Formats a day number as a date, such as "2026-03-29". */
export const dayText = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/** Formats a local time, such as "2026-03-29T09:00:00". */
export const localText = (local: number): string => new Date(local).toISOString().slice(0, 19);

/** Formats a time of day, such as "09:00", or "09:00:30" if it has seconds. @param second the second of the day */
export const clockText = (second: number): string => {
  const text = new Date(second * 1000).toISOString();
  return text.slice(11, second % 60 === 0 ? 16 : 19);
};

/** Returns the day number of a date; null if the date does not exist, or is before 1900 or after the last supported year. */
export function dayOfDate(year: number, month: number, day: number): number | null {
  if (year < 1900 || year > limits.lastYear) return null;
  const found = new Date(Date.UTC(year, month - 1, day));
  return found.getUTCMonth() === month - 1 && found.getUTCDate() === day ? found.getTime() / dayMs : null;
}
