import { describe, expect, test } from "vitest";
import { daysOf, meetings, scaleOf, shadeOf } from "./hours.ts";

const line = (from: string, hours: number, fires: Record<number, number> = {}) => ({
  from,
  fires: Array.from({ length: hours * 60 }, (_, minute) => fires[minute] ?? 0),
});

describe("a timeline's hours", () => {
  test("are the hours of the chosen zone, and so are its days", () => {
    const days = daysOf(line("2026-11-21T22:30:00Z", 3, { 0: 2, 31: 5, 32: 1, 95: 4 }), "Asia/Kolkata");
    expect(days).toHaveLength(1);
    expect(new Date(days[0]?.noonMs ?? 0).toISOString()).toBe("2026-11-22T06:30:00.000Z");
    // 22:30 UTC is 04:00 in Kolkata.
    expect(days[0]?.hours.map(({ first, end }) => end - first).slice(3, 8)).toEqual([0, 60, 60, 60, 0]);
    const [four, five] = days[0]?.hours.slice(4, 6) ?? [];
    expect([four?.fires, four?.peak, four?.peakAt]).toEqual([8, 5, 31]);
    expect(four?.stripes).toEqual([2, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0]);
    expect([five?.first, five?.peak, five?.stripes[7]]).toEqual([60, 4, 4]);
  });

  test("are doubled or missing where clocks change", () => {
    const minutes = (from: string) => daysOf(line(from, 24), "Europe/Berlin")[0]?.hours.map((h) => h.end - h.first);
    expect(minutes("2026-10-24T22:00:00Z")?.slice(0, 5)).toEqual([60, 60, 120, 60, 60]);
    expect(minutes("2026-03-28T23:00:00Z")?.slice(0, 5)).toEqual([60, 60, 0, 60, 60]);
  });

  test("list the minutes at which several tasks fire, each time of day once", () => {
    const day = 1_440;
    const { from, fires } = line("2026-11-20T23:00:00Z", 72, {
      60: 9,
      [60 + day]: 12,
      [60 + 2 * day]: 12,
      90: 4,
      95: 7,
    });
    const tasks = fires.map((count, place) => (count > 4 ? 3 : place === 90 ? 2 : 1));
    // One task fires in every minute. A minute in which only one further task fires does not count as a coincidence.
    expect(meetings({ from, fires, tasks }, "Europe/Berlin")).toEqual([
      { fires: 12, tasks: 3, place: 60 + day, days: 2 },
      { fires: 7, tasks: 3, place: 95, days: 1 },
    ]);
  });

  test("are shaded relative to the largest count, and the scale shows the ranges", () => {
    expect([0, 1, 2, 5, 30, 100].map((count) => shadeOf(count, 100))).toEqual([0, 1, 1, 2, 3, 5]);
    expect([0, 1].map((count) => shadeOf(count, 1))).toEqual([0, 1]);
    // Small counts get no dark shade, even if no minute has a higher count.
    expect([shadeOf(2, 2), shadeOf(9, 9), shadeOf(10, 10)]).toEqual([3, 4, 5]);
    for (const most of [1, 2, 3, 7, 100, 20_000]) {
      const scale = scaleOf(most);
      expect([scale[0]?.from, scale.at(-1)?.to]).toEqual([1, most]);
      for (const { shade, from, to } of scale.slice(0, -1))
        expect([shadeOf(from, most), shadeOf(to, most)]).toEqual([shade, shade]);
    }
  });
});
