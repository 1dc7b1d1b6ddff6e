/** What is due in the time that comes is counted by bins of this length, which begin at the same moments for all that count. */
export const binMs = 250;

export interface ComingRequest {
  groupIds: number[];
  nowMs: number;
  aheadMs: number;
  /** Counted of each group and priority. */
  most: number;
}

export interface ComingAnswer {
  /** Of each bin up to there, the first is that of now; what is overdue is in it. */
  counts: number[];
  /** When the next one after that is due. */
  nextMs: number | null;
}

/**
 * When claims must begin so that each is made some time ahead, and how far they reach then.
 * @param counts of what is due in each bin
 * @returns ms from the first bin's beginning; null where what comes is few, or takes no longer to claim than it is claimed ahead anyway
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
