/** Dates and times of day without a zone. Local times are written as if they were UTC epoch milliseconds. */
import { limits } from "../base/limits.ts";

/** The times of a schedule before its zone turns them into instants. */
export interface LocalTimes {
  /** The first match at or after a local time in whole seconds; Infinity if there is none. */
  nextLocal(local: number): number;
  /** The last match at or before a local time in whole seconds; −Infinity if there is none. */
  previousLocal(local: number): number;
}

export const dayMs = 86_400_000;

/** Days are counted from 1970-01-01. Every search ends here: a day more than UTC has, since zones are ahead of it. */
export const lastDay = Date.UTC(limits.lastYear + 1, 0, 1) / dayMs + 1;
/** A recurrence may begin before the first slot that there can be. */
export const firstDay = Date.UTC(1900, 0, 1) / dayMs;

export const mod = (value: number, by: number) => ((value % by) + by) % by;

/** @param month 0–11 */
export const dayOf = (year: number, month: number, day: number): number => Date.UTC(year, month, day) / dayMs;

/** 0 is Monday, as ISO 8601 and RFC 5545 count. */
export const weekdayOf = (day: number): number => mod(day + 3, 7);

/** The index of the first value at or above `wanted`; the length if there is none. */
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

/** "2026-03-29" */
export const dayText = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/** "2026-03-29T09:00:00" */
export const localText = (local: number): string => new Date(local).toISOString().slice(0, 19);

/** "09:00", or "09:00:30" where there are seconds. @param second of the day */
export const clockText = (second: number): string => {
  const text = new Date(second * 1000).toISOString();
  return text.slice(11, second % 60 === 0 ? 16 : 19);
};

/** Returns null if there is no such date from 1900 on. */
export function dayOfDate(year: number, month: number, day: number): number | null {
  if (year < 1900 || year > limits.lastYear) return null;
  const found = new Date(Date.UTC(year, month - 1, day));
  return found.getUTCMonth() === month - 1 && found.getUTCDate() === day ? found.getTime() / dayMs : null;
}
