export type Figures = Record<string, number>;

/** @param sorted values in ascending order @param share 0.99 for p99 @returns the nearest-rank percentile; NaN without values */
export function percentile(sorted: number[], share: number): number {
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number;
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle] as number;
  return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/** Returns min, p50, p99 and max of the lateness, in ms. */
export function latenessFigures(lateness: number[]): Figures {
  const sorted = lateness.toSorted((a, b) => a - b);
  return {
    min_ms: percentile(sorted, 0),
    p50_ms: percentile(sorted, 0.5),
    p99_ms: percentile(sorted, 0.99),
    max_ms: percentile(sorted, 1),
  };
}

export function suffixed(figures: Figures, suffix: string): Figures {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name + suffix, value]));
}

/** Rounds to three significant digits (five from 1,000 up); whole numbers stay exact. */
export function rounded(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(Math.abs(value) >= 1_000 ? 5 : 3));
}
