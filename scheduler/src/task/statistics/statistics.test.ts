import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noCounters } from "../task-record.ts";
import { bucketsPerDoubling, type Period, regressionsOf, type Spread, spreadOf, timeKinds } from "./statistics.ts";

const rowsOf = (times: readonly number[]) => {
  const classes = new Map<number, number[]>();
  for (const ms of times) {
    const bucket = Math.floor(Math.log2(ms + 1) * bucketsPerDoubling);
    classes.set(bucket, [...(classes.get(bucket) ?? []), ms]);
  }
  return [...classes].map(([bucket, all]) => ({
    hour: 1,
    kind: timeKinds.took,
    bucket,
    runs: all.length,
    sumMs: all.reduce((sum, ms) => sum + ms, 0),
    mostMs: Math.max(...all),
  }));
};

describe("spreadOf()", () => {
  it("returns percentiles within 19 % of the exact ones, and the exact mean, count and maximum", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 100_000_000 }), { minLength: 1 }), (times) => {
        const sorted = [...times].sort((a, b) => a - b);
        const found = spreadOf(rowsOf(times)) as Spread;
        expect(found.runs).toBe(times.length);
        expect(found.most).toBe(sorted.at(-1));
        expect(found.mean).toBe(Math.round(times.reduce((sum, ms) => sum + ms, 0) / times.length));
        for (const [name, share] of [
          ["p50", 0.5],
          ["p90", 0.9],
          ["p99", 0.99],
        ] as const) {
          const exact = sorted[Math.ceil(times.length * share) - 1] as number;
          expect(Math.abs(found[name] - exact)).toBeLessThanOrEqual(0.19 * (exact + 1) + 1);
        }
      }),
    );
  });

  it("returns null if no run is counted", () => expect(spreadOf([])).toBeNull());
});

describe("regressionsOf()", () => {
  const period = (succeeded: number, failed: number, p50: number): Period => {
    const spread = { runs: succeeded + failed, mean: p50, p50, p90: p50, p99: p50, most: p50 };
    return { fromMs: 0, counts: { ...noCounters, succeeded, failed }, took: spread, late: { ...spread, p50: 0 } };
  };

  it.each([
    ["half as long again", period(100, 0, 400), period(1_000, 0, 200), [{ figure: "took", was: 200, is: 400 }]],
    ["more failures", period(80, 20, 200), period(1_000, 10, 200), [{ figure: "failed", was: 10 / 1_010, is: 0.2 }]],
    ["too few runs to tell", period(10, 5, 900), period(1_000, 0, 200), []],
    ["a difference below 100 ms", period(100, 0, 90), period(1_000, 0, 10), []],
    ["better", period(100, 0, 100), period(900, 100, 900), []],
  ])("%s", (_, day, before, worse) => expect(regressionsOf(day, before)).toEqual(worse));

  it("compares nothing if one side is missing", () => expect(regressionsOf(period(100, 0, 1), undefined)).toEqual([]));
});
