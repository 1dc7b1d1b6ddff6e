/** The length of the bins in which coming runs are counted; bins begin at the same moments for every process that counts. */
export const binMs = 250;

export interface ComingRequest {
  groupIds: number[];
  nowMs: number;
  aheadMs: number;
  /** The most runs counted per group and priority. */
  most: number;
}

export interface ComingAnswer {
  /** Runs due in each bin; the first bin is the present one and includes overdue runs. */
  counts: number[];
  /** When the first run after the counted time is due. */
  nextMs: number | null;
}

/**
 * Computes when claims must begin so that each is made some time ahead, and how far they reach then.
 * @param counts the number of runs due in each bin
 * @returns ms from the first bin's beginning; null if few runs come, or if the usual time that claims are made ahead is enough
 */
export function beginning(
  counts: readonly number[],
  { perRunMs, aheadMs, few }: { perRunMs: number; aheadMs: number; few: number },
): { atMs: number; untilMs: number } | null {
  let [runs, atMs, untilMs] = [0, Number.POSITIVE_INFINITY, 0];
  for (const [bin, count] of counts.entries()) {
    runs += count;
    const takesMs = runs * perRunMs;
    if (count === 0 || runs <= few || takesMs <= aheadMs) continue;
    const startMs = bin * binMs;
    const beginMs = startMs - aheadMs - takesMs;
    if (beginMs > Math.max(atMs, 0)) continue;
    atMs = Math.min(atMs, beginMs);
    untilMs = startMs + binMs;
  }
  return untilMs > 0 ? { atMs, untilMs } : null;
}
