export interface Point {
  readonly hours: number;
  readonly value: number;
}

export interface Trend {
  /** Change of the value per hour: the median of the slopes of all pairs of points (Theil-Sen), on which outliers have little effect. */
  readonly perHour: number;
  /** The median of the values. */
  readonly median: number;
  readonly first: number;
  readonly last: number;
}

/** The number of pairs grows with the square of the number of points, so longer series are thinned out evenly to at most this length. */
const mostPoints = 600;

export function trendOf(points: readonly Point[]): Trend {
  const known = points.filter(({ value }) => Number.isFinite(value));
  const step = Math.max(1, Math.ceil(known.length / mostPoints));
  const taken = known.filter((_, at) => at % step === 0);
  const slopes: number[] = [];
  for (const [at, a] of taken.entries())
    for (const b of taken.slice(at + 1)) if (b.hours > a.hours) slopes.push((b.value - a.value) / (b.hours - a.hours));
  return {
    perHour: slopes.length === 0 ? 0 : median(slopes),
    median: median(known.map(({ value }) => value)),
    first: known[0]?.value ?? Number.NaN,
    last: known.at(-1)?.value ?? Number.NaN,
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle] as number;
  return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/** @param sorted values in ascending order @param share 0 to 1 @returns NaN if there are no values */
export const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
