import { type Counters, counterNames, noCounters } from "../task-record.ts";
import type { StatisticsStore, TimesRow } from "./statistics-store.ts";

export const hourMs = 3_600_000;
export const dayHours = 24;
/** The hour that contains a time (epoch ms), counted from 1970. */
export const hourOf = (ms: number): number => Math.floor(ms / hourMs);
/** Returns the first hour of the day (UTC) that contains the hour. */
export const dayStartOf = (hour: number): number => hour - (hour % dayHours);
export const statisticsPeriods = ["hour", "day", "month"] as const;
export type StatisticsPeriod = (typeof statisticsPeriods)[number];
/** Size classes of durations: each is a quarter of a doubling, so the values in it differ by at most 19 %. */
export const bucketsPerDoubling = 4;

/** The kinds of durations in a `TimesRow`. `took`: from a run's start to its end; `late`: how long the run waited only for a worker. */
export const timeKinds = { took: 0, late: 1 } as const;

/** Milliseconds. A percentile is the mean of the size class that it lies in, so it deviates by less than 19 %, usually far less. */
export interface Spread {
  runs: number;
  mean: number;
  p50: number;
  p90: number;
  p99: number;
  most: number;
}

export interface Period {
  fromMs: number;
  /** The exact numbers of ended runs, missed slots and retried attempts. */
  counts: Counters;
  /** The durations from start to end of runs that succeeded or failed; null if there are none. */
  took: Spread | null;
  late: Spread | null;
}

/** @returns the distribution of the durations in these rows; null if the rows count no run */
export function spreadOf(rows: readonly TimesRow[]): Spread | null {
  const classes = new Map<number, { runs: number; sumMs: number }>();
  let [runs, sumMs, most] = [0, 0, 0];
  for (const row of rows) {
    const known = classes.get(row.bucket) ?? { runs: 0, sumMs: 0 };
    classes.set(row.bucket, { runs: known.runs + row.runs, sumMs: known.sumMs + row.sumMs });
    runs += row.runs;
    sumMs += row.sumMs;
    most = Math.max(most, row.mostMs);
  }
  if (runs === 0) return null;
  const sorted = [...classes].sort(([a], [b]) => a - b).map(([, one]) => one);
  const percentile = (share: number) => {
    let left = Math.ceil(runs * share);
    for (const one of sorted) {
      left -= one.runs;
      if (left <= 0) return Math.round(one.sumMs / one.runs);
    }
    return most;
  };
  return {
    runs,
    mean: Math.round(sumMs / runs),
    p50: percentile(0.5),
    p90: percentile(0.9),
    p99: percentile(0.99),
    most,
  };
}

/**
 * Divides the figures of a task into periods.
 * @param counts the task's counters at the end of hours, oldest first
 * @param startOf returns the first hour of the period that contains an hour
 * @param fromHour earlier hours are left out, but the counts of the first period start from the last counters before this hour
 * @returns the periods that have figures, oldest first
 */
export function periodsOf(
  counts: readonly ({ hour: number } & Counters)[],
  times: readonly TimesRow[],
  startOf: (hour: number) => number,
  fromHour: number,
): Period[] {
  const periods = new Map<number, { counts: Counters; times: TimesRow[] }>();
  const at = (hour: number) => {
    const start = startOf(hour);
    const period = periods.get(start) ?? { counts: { ...noCounters }, times: [] };
    periods.set(start, period);
    return period;
  };
  let before = noCounters;
  for (const { hour, ...now } of counts) {
    const rose = counterNames.some((name) => now[name] !== before[name]);
    if (hour >= fromHour && rose) for (const name of counterNames) at(hour).counts[name] += now[name] - before[name];
    before = now;
  }
  for (const row of times) if (row.hour >= fromHour) at(row.hour).times.push(row);
  return [...periods]
    .sort(([a], [b]) => a - b)
    .map(([start, { counts: summed, times: rows }]) => ({
      fromMs: start * hourMs,
      counts: summed,
      took: spreadOf(rows.filter(({ kind }) => kind === timeKinds.took)),
      late: spreadOf(rows.filter(({ kind }) => kind === timeKinds.late)),
    }));
}

const startsOf: Record<StatisticsPeriod, (hour: number) => number> = {
  hour: (hour) => hour,
  day: dayStartOf,
  month(hour) {
    const at = new Date(hour * hourMs);
    return hourOf(Date.UTC(at.getUTCFullYear(), at.getUTCMonth()));
  },
};

const shownByDefault: Record<StatisticsPeriod, number> = {
  hour: 2 * dayHours,
  day: 30 * dayHours,
  month: 396 * dayHours,
};
const comparedDays = 14;

export interface TaskStatistics {
  periods: Period[];
  /** Runs that ended before this time (epoch ms) are counted in `took` and `late`; null if none has been counted. */
  timesUntilMs: number | null;
  worse: Regression[];
}

/**
 * Returns the statistics of one task in periods that begin in UTC. Hourly figures are kept for 14 days and daily figures for 400 days;
 * where hours have been merged, a period of an hour covers the whole day.
 * @param sinceMs a time (epoch ms) that the first period contains; default: some periods ago
 */
export async function statisticsOf(
  store: StatisticsStore,
  taskId: number,
  { by, sinceMs, nowMs }: { by: StatisticsPeriod; sinceMs?: number | undefined; nowMs: number },
): Promise<TaskStatistics> {
  const fromHour = startsOf[by](sinceMs === undefined ? hourOf(nowMs) - shownByDefault[by] + 1 : hourOf(sinceMs));
  const dayFrom = hourOf(nowMs) - dayHours;
  const compared = startsOf.day(dayFrom - comparedDays * dayHours);
  const { counts, times, timesUntilMs, mergedHour } = await store.read(taskId, Math.min(fromHour, compared), nowMs);
  const isNow = (hour: number) => (hour >= dayFrom ? dayFrom : compared);
  const halves = periodsOf(counts, times, isNow, compared);
  const startOf = (hour: number) => startsOf[by === "hour" && hour < mergedHour ? "day" : by](hour);
  const half = (hour: number) => halves.find(({ fromMs }) => fromMs === hour * hourMs);
  return {
    periods: periodsOf(counts, times, startOf, fromHour),
    timesUntilMs,
    worse: regressionsOf(half(dayFrom), half(compared)),
  };
}

/** A figure of the last day that is clearly worse than in the two weeks before it. */
export interface Regression {
  figure: "took" | "late" | "failed";
  /** p50 of durations in ms, or the share of runs that failed, 0 to 1. */
  was: number;
  is: number;
}

const runsLeast = 20;
const timesWorse = 1.5;
/** Differences of durations below this many ms are not reported. */
const leastMs = 100;
const failedMore = 0.05;

/** Compares one day with the days before it. @param day the day's figures @param before the figures of the days before, as one period */
export function regressionsOf(day: Period | undefined, before: Period | undefined): Regression[] {
  if (!day || !before) return [];
  const found: Regression[] = [];
  for (const figure of ["took", "late"] as const) {
    const [was, is] = [before[figure], day[figure]];
    if (!was || !is || was.runs < runsLeast || is.runs < runsLeast) continue;
    if (is.p50 > was.p50 * timesWorse && is.p50 - was.p50 >= leastMs) found.push({ figure, was: was.p50, is: is.p50 });
  }
  const share = ({ counts: { succeeded, failed } }: Period) => failed / Math.max(1, succeeded + failed);
  const ended = ({ counts: { succeeded, failed } }: Period) => succeeded + failed;
  const [was, is] = [share(before), share(day)];
  if (ended(day) >= runsLeast && ended(before) >= runsLeast && is > was * timesWorse && is - was >= failedMore)
    found.push({ figure: "failed", was, is });
  return found;
}
