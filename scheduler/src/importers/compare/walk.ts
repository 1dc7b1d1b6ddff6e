/** Computes instants from the fields of a source's expression, day by day: slow, but without shortcuts that could be wrong. */
import { dayMs, instantsOf, offsetAt } from "./clock.ts";

export interface CivilDate {
  year: number;
  /** From 1 to 12. */
  month: number;
  day: number;
  /** 0 stands for Sunday. */
  weekday: number;
  /** The number of the month's last day. */
  last: number;
}

export interface Reading {
  /** In ascending order. */
  hours: readonly number[];
  minutes: readonly number[];
  seconds: readonly number[];
  isDay: (date: CivilDate) => boolean;
}

/** How far to search for the next day: a leap day on a given weekday comes every 28 years, or after 40 years around 2100. */
const horizonDays = 41 * 366;
const endDay = Date.UTC(2201, 0, 1) / dayMs;

export const dateOf = (day: number): CivilDate => {
  const at = new Date(day * dayMs);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth() + 1];
  const last = new Date(Date.UTC(year, month, 0)).getUTCDate();
  return { year, month, day: at.getUTCDate(), weekday: at.getUTCDay(), last };
};

/** The first `count` times after an instant; fewer if there are no more by the year 2200. */
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
