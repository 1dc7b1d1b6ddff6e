/** Computes fire times from a parsed expression by testing every day in turn: slow, but without shortcuts that could hide a mistake. */
import { dayMs, instantsOf, offsetAt } from "./clock.ts";

export interface CivilDate {
  year: number;
  /** From 1 to 12. */
  month: number;
  day: number;
  /** 0 means Sunday. */
  weekday: number;
  /** The number of days in the month. */
  last: number;
}

export interface Reading {
  /** Each of the three lists is in ascending order. */
  hours: readonly number[];
  minutes: readonly number[];
  seconds: readonly number[];
  isDay: (date: CivilDate) => boolean;
}

/** The number of days to search. A given weekday falls on 29 February every 28 years, or after 40 years around the year 2100. */
const horizonDays = 41 * 366;
const endDay = Date.UTC(2201, 0, 1) / dayMs;

export const dateOf = (day: number): CivilDate => {
  const at = new Date(day * dayMs);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth() + 1];
  const last = new Date(Date.UTC(year, month, 0)).getUTCDate();
  return { year, month, day: at.getUTCDate(), weekday: at.getUTCDay(), last };
};

/** Returns the first `count` times after an instant, or fewer if none follows the last one within `horizonDays` or until 2200. */
export function timesOf(reading: Reading, zone: string, afterMs: number, count: number): number[] {
  const found: number[] = [];
  let lastDay = Math.floor(afterMs / dayMs) - 2;
  for (let day = lastDay; day < Math.min(lastDay + horizonDays, endDay) && found.length < count; day++) {
    if (!reading.isDay(dateOf(day))) continue;
    lastDay = day;
    for (const ms of instantsOfDay(reading, zone, day)) {
      if (ms > afterMs) found.push(ms);
      if (found.length === count) break;
    }
  }
  return found;
}

function instantsOfDay(reading: Reading, zone: string, day: number): Iterable<number> {
  const offset = offsetAt((day - 1) * dayMs, zone);
  const isSteady = [day + 1, day + 2].every((near) => offsetAt(near * dayMs, zone) === offset);
  if (isSteady) return localsOfDay(reading, day, (localMs) => [localMs - offset]);
  return [...new Set(localsOfDay(reading, day, (localMs) => instantsOf(localMs, zone)))].sort((a, b) => a - b);
}

function* localsOfDay(reading: Reading, day: number, instants: (localMs: number) => number[]): Generator<number> {
  for (const hour of reading.hours)
    for (const minute of reading.minutes)
      for (const second of reading.seconds) yield* instants(day * dayMs + ((hour * 60 + minute) * 60 + second) * 1_000);
}
