import { describe, expect, it } from "vitest";
import { byFilter } from "../commands/operation-commands.ts";
import { filterOf, rateOf, timeOf } from "./operations.ts";

const usage = expect.objectContaining({ code: "USAGE" });

describe("options of the bulk commands", () => {
  it("times are timestamps with an offset, or spans before now", () => {
    expect(timeOf("--since", "1970-01-01T00:00:01Z", 5_000)).toBe(1_000);
    expect(timeOf("--since", "2s", 5_000)).toBe(3_000);
    expect(timeOf("--since", "1h 30m", 6_000_000)).toBe(600_000);
    for (const text of ["yesterday", "2026-12-24", "", "1970-01-01T00:00:01"])
      expect(() => timeOf("--since", text, 0), text).toThrowError(usage);
  });

  it("rates are a count per span", () => {
    expect([rateOf("10/s"), rateOf("120/m"), rateOf("1/10s"), rateOf("5/500ms")]).toEqual([10, 2, 0.1, 10]);
    for (const text of ["fast", "10", "/s", "1.5/s", "10/fortnight"])
      expect(() => rateOf(text), text).toThrowError(usage);
  });

  it("filters contain exactly the given options", () => {
    const common = { color: false };
    expect(filterOf(common, 0)).toEqual({});
    expect(filterOf({ ...common, task: "a", state: ["failed"], since: "1s", all: true }, 5_000)).toEqual({
      task: "a",
      states: ["failed"],
      sinceMs: 4_000,
      all: true,
    });
  });

  it("names and a filter cannot be combined", () => {
    const common = { color: false };
    expect(byFilter(["a"], { ...common, reason: "x", yes: true })).toBe(false);
    expect(byFilter([], common)).toBe(true);
    for (const option of [{ matching: "a*" }, { all: true }, { all: true, wait: true }])
      expect(() => byFilter(["a"], { ...common, ...option })).toThrowError(
        expect.objectContaining({ code: "USAGE", message: "names and a filter were given" }),
      );
    for (const [option, flag] of [
      [{ wait: true }, "--wait"],
      [{ dryRun: true }, "--dry-run"],
    ] as const)
      expect(() => byFilter(["a"], { ...common, ...option })).toThrowError(
        expect.objectContaining({ code: "USAGE", message: `${flag} goes with a filter, and names were given` }),
      );
  });
});
