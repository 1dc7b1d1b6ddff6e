import { describe, expect, test } from "vitest";
import { localText, readTime } from "./local-time.ts";

const now = Date.parse("2026-07-01T12:00:00Z");
const iso = (typed: string, zone: string, side: "next" | "last" = "last") => {
  const ms = readTime(typed, zone, now, side);
  return ms === undefined ? undefined : new Date(ms).toISOString();
};

describe("a time field's text", () => {
  test("is in the chosen time zone, whatever the machine's zone is", () => {
    for (const [zone, text] of [
      ["UTC", "2026-07-01 12:00"],
      ["Europe/Berlin", "2026-07-01 14:00"],
      ["Asia/Kathmandu", "2026-07-01 17:45"],
      ["America/Los_Angeles", "2026-07-01 05:00"],
    ] as const) {
      expect([zone, localText(now, zone)]).toEqual([zone, text]);
      expect([zone, iso(text, zone)]).toEqual([zone, "2026-07-01T12:00:00.000Z"]);
    }
  });

  test("means the first of two equal local times, and is shifted forward if the local time does not exist", () => {
    expect(iso("2026-10-25 02:30", "Europe/Berlin")).toBe("2026-10-25T00:30:00.000Z");
    expect(iso("2026-03-29T02:30", "Europe/Berlin")).toBe("2026-03-29T01:30:00.000Z");
  });

  test("may be a day, a time of day, or a timestamp copied from a log", () => {
    expect(iso("2026-06-30", "Asia/Tokyo")).toBe("2026-06-29T15:00:00.000Z");
    expect(iso("2026-06-30T23:59:30.250Z", "Asia/Tokyo")).toBe("2026-06-30T23:59:30.250Z");
    expect(iso("2026-06-30T23:59:30+02:00", "Asia/Tokyo")).toBe("2026-06-30T21:59:30.000Z");
    // In Berlin it is 14:00.
    expect(iso("18:00", "Europe/Berlin", "next")).toBe("2026-07-01T16:00:00.000Z");
    expect(iso("9:30", "Europe/Berlin", "next")).toBe("2026-07-02T07:30:00.000Z");
    expect(iso("9:30", "Europe/Berlin", "last")).toBe("2026-07-01T07:30:00.000Z");
    expect(iso("18:00", "Europe/Berlin", "last")).toBe("2026-06-30T16:00:00.000Z");
  });

  test.each([
    "",
    "soon",
    "2026",
    "2026-02-30",
    "2026-13-01",
    "2026-07-01 25:00",
    "2026-07-01 12:75",
    "25:00",
    "0002-10-25 02:30",
  ])("is refused if it is not a time: %j", (typed) => {
    expect(iso(typed, "Europe/Berlin")).toBeUndefined();
  });
});
