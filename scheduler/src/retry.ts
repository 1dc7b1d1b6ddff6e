import type { Random } from "./random.ts";

export interface RetryPolicy {
  /** Tries in all, the first included. */
  attempts: number;
  backoff: "fixed" | "exponential";
  delayMs: number;
  /** The longest pause between two tries. */
  maxDelayMs: number;
  /** 0 none … 1: the pause is drawn from [pause × (1 − jitter), pause]. */
  jitter: number;
}

/**
 * How long to wait before the next try.
 * @param attempt the try that just failed, from 1
 * @returns milliseconds, or null when no try is left
 */
export function retryDelay(policy: RetryPolicy, attempt: number, random: Random): number | null {
  if (attempt >= policy.attempts) return null;
  // 2^52 × delay stays finite; the cap makes anything above it equal.
  const grown = policy.backoff === "fixed" ? policy.delayMs : policy.delayMs * 2 ** Math.min(attempt - 1, 52);
  const pause = Math.min(grown, policy.maxDelayMs);
  return Math.round(pause * (1 - policy.jitter * random.next()));
}
