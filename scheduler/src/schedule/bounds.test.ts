import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { caught } from "../../test/support/caught.ts";
import { readSchedule, writtenSchedule } from "../task/kinds/schedule.ts";
import { type Bounds, compileSchedule, cron, every, nextSlots, previousSlots, type ScheduleSpec } from "./schedule.ts";

const hourMs = 3_600_000;
const ms = (text: string) => Date.parse(text);
const iso = (slots: readonly number[]) => slots.map((slot) => new Date(slot).toISOString().replace(":00.000Z", "Z"));

describe("a schedule with a start and an end", () => {
  const from = "2026-12-01T00:00:00Z";

  it("has no slot before its start or after its end; the end itself may be a slot", () => {
    const daily = cron("0 9 * * *", { zone: "Europe/Berlin", from, until: "2026-12-03T08:00:00Z" });
    const all = ["2026-12-01T08:00Z", "2026-12-02T08:00Z", "2026-12-03T08:00Z"];
    expect(iso(nextSlots(daily, 0, 10))).toEqual(all);
    expect(iso(previousSlots(daily, Number.POSITIVE_INFINITY, 10))).toEqual(all.toReversed());
    expect(nextSlots(daily, ms("2026-12-03T08:00Z"), 1)).toEqual([]);
    expect(previousSlots(daily, ms("2026-12-01T08:00Z"), 1)).toEqual([]);
    expect(compileSchedule(daily).words()).toBe(
      "at 09:00 every day, Europe/Berlin, from 2026-12-01T00:00:00Z, until 2026-12-03T08:00:00Z",
    );
  });

  it("has the given number of slots, counted from its start, whenever it is queried", () => {
    const instalments = cron("0 9 L * *", { zone: "Europe/Berlin", from, times: 3 });
    expect(iso(nextSlots(instalments, 0, 10))).toEqual(["2026-12-31T08:00Z", "2027-01-31T08:00Z", "2027-02-28T08:00Z"]);
    expect(iso(nextSlots(instalments, ms("2027-01-31T08:00Z"), 10))).toEqual(["2027-02-28T08:00Z"]);
    const often = every("1s", { anchor: from, from, times: 1_000_000 });
    expect(nextSlots(often, ms(from) + 999_998_000, 10)).toEqual([ms(from) + 999_999_000]);
    expect(compileSchedule(often).words()).toBe("every second, from 2026-12-01T00:00:00Z, 1000000 times");
    expect(nextSlots(cron("0 0 0 1 1 ? 2027-2028", { from, times: 10 }), 0, 10)).toHaveLength(2);
  });

  it("keeps the phase of an interval from its anchor", () => {
    const quarters = every("15m", { from: "2026-12-01T00:05:00Z", until: "2026-12-01T00:40:00Z" });
    expect(iso(nextSlots(quarters, 0, 10))).toEqual(["2026-12-01T00:15Z", "2026-12-01T00:30Z"]);
  });

  it.each([
    [() => cron("0 9 * * *", { times: 3 }), "times: there is no from to count from"],
    [() => cron("0 9 * * *", { from, times: 0 }), "times: 0 is not a whole number from 1 to 10000"],
    [() => cron("0 9 * * *", { from, times: 10_001 }), "times: 10001 is not a whole number from 1 to 10000"],
    [() => cron("0 9 * * *", { from, until: from, times: 2 }), "times and until: there is one end"],
    [() => cron("0 9 * * *", { from, until: from }), `from, until: there is no slot from ${from} until ${from}`],
    [() => every("1h", { from, until: "2026-11-30T00:00:00Z" }), "from, until: there is no slot from"],
    [() => cron("0 9 * * *", { until: "2026-12-01" }), 'until: "2026-12-01" is not a time with an offset or Z'],
    [() => every("1h", { mode: "delay", from }), "from, until, times: a fixed delay has none"],
  ])("refuses contradictory bounds: %#", (make, message) => {
    const error = caught(make);
    expect(error).toMatchObject({ code: "SCHEDULE_INVALID", message: expect.stringContaining(message) });
    expect(error.hint).not.toBe("" as never);
  });

  it("is written as it was read, and without bounds as before", () => {
    for (const written of [
      { cron: "0 9 * * *", zone: "UTC", from: "2026-12-01T00:00:00.000Z", times: 12 },
      { every: "15m", until: "2026-12-01T00:40:00.000Z" },
      { every: "15m" },
    ])
      expect(writtenSchedule(readSchedule(written))).toEqual(written);
  });

  it("has exactly the unbounded schedule's slots within the bounds, in both directions", () => {
    const bases: ScheduleSpec[] = [
      cron("*/20 * * * *"),
      cron("30 2 * * *", { zone: "America/New_York" }),
      cron("15 1,2,3 * * 0", { zone: "Europe/Berlin" }),
      every("7m"),
      every("1h", { anchor: 1_234_567 }),
    ];
    const near = fc.integer({ min: 0, max: 40 * 24 * 60 }).map((minutes) => ms("2026-03-01T00:00Z") + minutes * 60_000);
    const end: fc.Arbitrary<Bounds> = fc.oneof(
      near.map((untilMs) => ({ untilMs })),
      fc.integer({ min: 1, max: 30 }).map((times) => ({ times })),
    );
    fc.assert(
      fc.property(fc.constantFrom(...bases), near, end, near, (base, fromMs, bounds, askedMs) => {
        const all = nextSlots(base, fromMs - 1, 8_000).filter((slot) => slot <= (bounds.untilMs ?? slot));
        const within = all.slice(0, bounds.times);
        fc.pre(within.length > 0 && within.length < 8_000);
        const spec = { ...base, fromMs, ...bounds } as ScheduleSpec;
        const after = nextSlots(spec, askedMs, within.length + 1);
        expect(after).toEqual(within.filter((slot) => slot > askedMs));
        const before = previousSlots(spec, askedMs, within.length + 1);
        expect(before).toEqual(within.filter((slot) => slot < askedMs).toReversed());
        expect(nextSlots(spec, fromMs - 100 * hourMs, 1)).toEqual(within.slice(0, 1));
      }),
      { numRuns: 200 },
    );
  });
});
