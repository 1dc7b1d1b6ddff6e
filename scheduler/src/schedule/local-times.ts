/** Dates and times of day without a zone. Local times are written as if they were UTC epoch milliseconds. */
import { limits } from "../base/limits.ts";

/** The times of a schedule as local times, before its zone converts them to instants. */
export interface LocalTimes {
  /** The first match at or after a local time in whole seconds; Infinity if there is none. */
  nextLocal(local: number): number;
  /** The last match at or before a local time in whole seconds; −Infinity if there is none. */
  previousLocal(local: number): number;
}

export const dayMs = 86_400_000;

/** The day at which every search ends, counted from 1970-01-01. It is a day later than in UTC, because some zones are ahead of UTC. */
export const lastDay = Date.UTC(limits.lastYear + 1, 0, 1) / dayMs + 1;
/** The first day, which is earlier than any slot, because a recurrence may begin before its first slot. */
export const firstDay = Date.UTC(1900, 0, 1) / dayMs;

export const mod = (value: number, by: number) => ((value % by) + by) % by;

/** @param month 0–11 */
export const dayOf = (year: number, month: number, day: number): number => Date.UTC(year, month, day) / dayMs;

/** 0 is Monday, as in ISO 8601 and RFC 5545. */
export const weekdayOf = (day: number): number => mod(day + 3, 7);

/** The index of the first value that is at least `wanted`; the length if there is none. */
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

/** The date as text, such as "2026-03-29". */
export const dayText = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/** The local time as text, such as "2026-03-29T09:00:00". */
export const localText = (local: number): string => new Date(local).toISOString().slice(0, 19);

/** The time of day as text, "09:00", or "09:00:30" if it has seconds. @param second the second of the day */
export const clockText = (second: number): string => {
  const text = new Date(second * 1000).toISOString();
  return text.slice(11, second % 60 === 0 ? 16 : 19);
};

/** Returns the day's number; null if there is no such date since 1900. */
export function dayOfDate(year: number, month: number, day: number): number | null {
  if (year < 1900 || year > limits.lastYear) return null;
  const found = new Date(Date.UTC(year, month - 1, day));
  return found.getUTCMonth() === month - 1 && found.getUTCDate() === day ? found.getTime() / dayMs : null;
}
