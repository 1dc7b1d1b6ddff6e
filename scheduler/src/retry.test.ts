import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Random } from "./random.ts";
import { type RetryPolicy, retryDelay } from "./retry.ts";

const always = (value: number): Random => ({ next: () => value });
const policy = (part: Partial<RetryPolicy> = {}): RetryPolicy => ({
  attempts: 5,
  backoff: "fixed",
  delayMs: 1_000,
  maxDelayMs: 60_000,
  jitter: 0,
  ...part,
});

describe("pauses between tries", () => {
  it("fixed ones are all alike, and after the last try there is none", () => {
    expect([1, 2, 3, 4, 5, 6].map((attempt) => retryDelay(policy(), attempt, always(0)))).toEqual([
      1_000,
      1_000,
      1_000,
      1_000,
      null,
      null,
    ]);
    expect(retryDelay(policy({ attempts: 1 }), 1, always(0))).toBeNull();
  });

  it("exponential ones double up to the longest", () => {
    const grown = policy({ backoff: "exponential", attempts: 100, maxDelayMs: 10_000 });
    expect([1, 2, 3, 4, 5, 6, 99].map((attempt) => retryDelay(grown, attempt, always(0)))).toEqual([
      1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000,
    ]);
  });

  it("jitter takes off up to its share", () => {
    expect(retryDelay(policy({ jitter: 0.2 }), 1, always(0))).toBe(1_000);
    expect(retryDelay(policy({ jitter: 0.2 }), 1, always(0.5))).toBe(900);
    expect(retryDelay(policy({ jitter: 1 }), 1, always(0.999))).toBe(1);
  });

  it("are whole milliseconds within their bounds, whatever the policy", () => {
    const policies = fc.record({
      attempts: fc.integer({ min: 1, max: 1_000 }),
      backoff: fc.constantFrom("fixed" as const, "exponential" as const),
      delayMs: fc.integer({ min: 0, max: 2 ** 40 }),
      maxDelayMs: fc.integer({ min: 0, max: 2 ** 40 }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(
        policies,
        fc.integer({ min: 1, max: 1_000 }),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        (given, attempt, chance) => {
          const pause = retryDelay(given, attempt, always(chance));
          if (attempt >= given.attempts) return pause === null;
          return Number.isSafeInteger(pause) && (pause as number) >= 0 && (pause as number) <= given.maxDelayMs;
        },
      ),
    );
  });
});
