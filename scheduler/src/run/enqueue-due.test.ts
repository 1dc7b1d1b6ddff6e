import { describe, expect, it } from "vitest";
import { dueOfEnqueue, type EnqueueOptions } from "./enqueue-options.ts";

const nowMs = Date.UTC(2030, 0, 1);

describe("the due time of an enqueued run", () => {
  it.each<[EnqueueOptions, number]>([
    [{}, nowMs],
    [{ in: "1d" }, nowMs + 86_400_000],
    [{ at: 0 }, 0],
    [{ at: new Date("2200-12-31T23:59:59.999Z") }, Date.UTC(2201, 0, 1) - 1],
  ])("%o is accepted", (options, dueMs) => {
    expect(dueOfEnqueue(options, nowMs)).toBe(dueMs);
  });

  it.each<[EnqueueOptions, RegExp]>([
    [{ at: 1.79e18 }, /^at: 1790000000000000000 lies beyond the year 2200$/],
    [{ at: new Date("2201-01-01T00:00:00Z") }, /beyond the year 2200/],
    [{ at: 1e300 }, /beyond the year 2200/],
    [{ at: -1e17 }, /before 1970/],
    [{ in: "100000000d" }, /^in: "100000000d" lies beyond the year 2200$/],
    [{ at: new Date(Number.NaN) }, /is not a time/],
    [{ at: Object.create(null) }, /is not a time/],
    [{ at: "1790000000000" as unknown as number }, /is not a time/],
  ])("%o is refused", (options, message) => {
    expect(() => dueOfEnqueue(options, nowMs)).toThrowError(
      expect.objectContaining({ code: "OPTION_INVALID", message: expect.stringMatching(message) }),
    );
  });
});
