import { describe, expect, it } from "vitest";
import { cron, nextSlots, type ScheduleSpec } from "../../schedule/schedule.ts";
import { zoneOf } from "../../schedule/zone.ts";
import { clockChange } from "../tasks/clock-changes.ts";
import { ageText, briefText, clockText, offsetText, spanText, timeText } from "./times.ts";

const newYork = zoneOf("America/New_York");
const kolkata = zoneOf("Asia/Kolkata");
const at = Date.parse("2026-07-01T18:03:20.001Z");

describe("times for people", () => {
  it("are in a zone and show its offset", () => {
    expect(timeText(at, newYork)).toBe("2026-07-01 14:03:20.001 -04:00");
    expect(timeText(Date.parse("2026-07-01T18:30:00Z"), kolkata)).toBe("2026-07-02 00:00:00 +05:30");
    expect(clockText(at, newYork)).toBe("14:03:20.001");
    expect(offsetText(-12_600_000)).toBe("-03:30");
  });

  it("name the day only if it is another day", () => {
    expect(briefText(at, at + 1_000, newYork)).toBe("14:03:20");
    expect(briefText(at, at + 86_400_000, newYork)).toBe("Jul 01 14:03");
    expect(briefText(at, at + 400 * 86_400_000, newYork)).toBe("2026-07-01");
  });

  it.each([
    [0, "0 ms"],
    [999.4, "999 ms"],
    [1_000, "1.0 s"],
    [9_949, "9.9 s"],
    [59_400, "59 s"],
    [59_600, "1 min"],
    [123_000, "2 min 3 s"],
    [3_599_000, "59 min"],
    [3_660_000, "1 h 1 min"],
    [86_400_000, "24 h"],
    [3 * 86_400_000, "3 d"],
    [900 * 86_400_000, "2 years"],
    [-5, "−5 ms"],
  ])("%d ms is %s", (ms, text) => expect(spanText(ms)).toBe(text));

  it("are shown relative to now", () => {
    expect(ageText(at + 5_000, at)).toBe("in 5.0 s");
    expect(ageText(at - 180_000, at)).toBe("3 min ago");
    expect(ageText(at - 100, at)).toBe("now");
  });
});

describe("the note on a change of clocks at a slot", () => {
  const notes = (spec: ScheduleSpec, after: string, count: number) => {
    const zone = zoneOf(spec.type === "cron" ? spec.zone : "UTC");
    const slots = nextSlots(spec, Date.parse(after), count);
    return slots.map((slot, i) => [timeText(slot, zone), clockChange(spec, slot, slots[i - 1] ?? null, zone)]);
  };

  it("explains that a local time does not exist", () => {
    expect(notes(cron("30 2 * * *", { zone: "America/New_York" }), "2027-03-13T12:00:00Z", 2)).toEqual([
      ["2027-03-14 03:30:00 -04:00", "02:30 does not exist: shifted by 1 h"],
      ["2027-03-15 02:30:00 -04:00", ""],
    ]);
  });

  it("explains that a local time occurs twice", () => {
    expect(notes(cron("30 1 * * *", { zone: "America/New_York", overlap: "both" }), "2027-11-06T12:00:00Z", 3)).toEqual(
      [
        ["2027-11-07 01:30:00 -04:00", "this local time comes twice: the first"],
        [
          "2027-11-07 01:30:00 -05:00",
          "clocks went back 1 h, -04:00 → -05:00; this local time comes twice: the second",
        ],
        ["2027-11-08 01:30:00 -05:00", ""],
      ],
    );
  });

  it("is absent for a slot that the cron expression names itself", () => {
    expect(notes(cron("0,30 * * * *", { zone: "Europe/Berlin" }), "2027-03-28T00:00:00Z", 3)).toEqual([
      ["2027-03-28 01:30:00 +01:00", ""],
      ["2027-03-28 03:00:00 +02:00", "clocks went forward 1 h, +01:00 → +02:00"],
      ["2027-03-28 03:30:00 +02:00", ""],
    ]);
  });

  it("gives half an hour where clocks change by half an hour", () => {
    expect(notes(cron("15 2 * * *", { zone: "Australia/Lord_Howe" }), "2026-10-03T00:00:00Z", 1)).toEqual([
      ["2026-10-04 02:45:00 +11:00", "02:15 does not exist: shifted by 30 min"],
    ]);
  });
});
