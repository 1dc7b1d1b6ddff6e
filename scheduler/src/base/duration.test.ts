import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutOffAfter } from "./cut-off.ts";
import { formatDuration, parseDuration } from "./duration.ts";

describe("durations", () => {
  it.each([
    [250, 250],
    ["250ms", 250],
    ["15m", 900_000],
    ["1h 30m", 5_400_000],
    ["1.5d", 129_600_000],
    ["2w", 1_209_600_000],
    [" 1 s ", 1_000],
    ["0.4ms 0.6ms", 1],
  ])("%j is %i ms", (value, ms) => {
    expect(parseDuration(value)).toBe(ms);
  });

  it.each([
    0,
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    "",
    "15",
    "m",
    "1y",
    "-5s",
    "1h-30m",
    "1e3s",
    "0s",
    `${"9".repeat(20)}w`,
    " ".repeat(65),
  ])("refuses %j, naming the option", (value) => {
    expect(() => parseDuration(value, "timeout")).toThrow(
      expect.objectContaining({ code: "DURATION_INVALID", message: expect.stringContaining("timeout") }),
    );
  });

  it.each([null, undefined, {}, [], true, 10n])("refuses a value that is not a duration: %s", (value) => {
    expect(() => parseDuration(value as never)).toThrow();
  });

  it("has a minimum that the caller can set", () => {
    expect(parseDuration(0, "grace", 0)).toBe(0);
    expect(() => parseDuration("999ms", "after", 1_000)).toThrow(expect.objectContaining({ code: "DURATION_INVALID" }));
  });

  it("are written as the shortest exact text, which parses to the same value", () => {
    expect(formatDuration(0)).toBe("0s");
    expect(formatDuration(5_400_000)).toBe("1h30m");
    expect(formatDuration(86_461_001)).toBe("1d1m1s1ms");
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 45 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });

  it("refuses a long text of digits without catastrophic backtracking", () => {
    for (const text of [`${"1".repeat(100_000)}x`, `${"1".repeat(63)}x`, `${"1 ".repeat(31)}x`])
      expect(() => cutOffAfter(60_000, () => parseDuration(text))).toThrow(
        expect.objectContaining({ code: "DURATION_INVALID" }),
      );
  });
});
