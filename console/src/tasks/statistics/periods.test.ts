import { expect, test } from "vitest";
import { placesOf, sinceOf, successOf } from "./periods.ts";

const counts = { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, missed: 0, retried: 0 };

test("the share of success leaves out runs that were cancelled or skipped", () => {
  expect(successOf({ counts: { ...counts, succeeded: 3, failed: 1, cancelled: 9, skipped: 9 } })).toBe(0.75);
  expect(successOf({ counts: { ...counts, skipped: 5 } })).toBe(null);
});

test("days are shown for three months, from a whole day on", () => {
  expect(sinceOf("day", Date.parse("2030-05-04T13:14:15Z"))).toBe("2030-02-01T00:00:00.000Z");
  expect(sinceOf("hour", 0)).toBe(undefined);
});

test("periods lie where they are in time, with gaps where the task did nothing", () => {
  const days = ["2030-01-01", "2030-01-02", "2030-01-16"].map((day) => ({ from: `${day}T00:00:00.000Z` }));
  expect(placesOf(days, "day")).toEqual([
    { from: 0, width: 1 / 16 },
    { from: 1 / 16, width: 1 / 16 },
    { from: 15 / 16, width: 1 / 16 },
  ]);
  expect(placesOf(days.slice(0, 1), "day")).toEqual([{ from: 13 / 14, width: 1 / 14 }]);
  expect(placesOf([], "day")).toEqual([]);
});
