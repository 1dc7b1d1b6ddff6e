/**
 * The length in ms of the time bins in which future runs are counted. Bins are aligned to epoch time, so they are the same in every
 * process.
 */
export const binMs = 250;

export interface ComingRequest {
  groupIds: number[];
  nowMs: number;
  aheadMs: number;
  /** The maximum number of runs counted per group and priority. */
  most: number;
}

export interface ComingAnswer {
  /** The number of runs due in each bin. The first bin is the current one and includes overdue runs. */
  counts: number[];
  /** When the first run after the last bin is due, in epoch ms; null if there is none. */
  nextMs: number | null;
}

/**
 * Computes when a worker must begin to claim, so that each run is claimed `aheadMs` before it is due, and up to which due time it then
 * claims.
 * @param counts the number of runs due in each bin
 * @returns both times in ms from the beginning of the first bin; null if few runs are due, or if claiming takes no longer than `aheadMs`
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
