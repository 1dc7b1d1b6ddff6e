import { describe, expect, it } from "vitest";
import { cron, every } from "../../scheduler/src/schedule/schedule.ts";
import { slotsBetween } from "../src/check/oracle.ts";

const utc = (text: string) => Date.parse(`${text}Z`);
const times = (slots: number[]) => slots.map((slot) => new Date(slot).toISOString().slice(11, 19));

describe("the checker's own oracle", () => {
  const [spring, autumn] = [utc("2027-03-14T06:55"), utc("2027-11-07T05:55")];

  it("shifts a skipped local time by the gap, or leaves it out", () => {
    const zone = "America/New_York";
    const at = (gap: "shift" | "skip") =>
      times(slotsBetween(cron("30 2 * * *", { zone, gap }), spring, spring + 3_600_000));
    expect(at("shift")).toEqual(["07:30:00"]);
    expect(at("skip")).toEqual([]);
  });

  it("takes the first of two equal local times, the last, or both", () => {
    const zone = "America/New_York";
    const at = (overlap: "first" | "last" | "both") =>
      times(slotsBetween(cron("30 1 * * *", { zone, overlap }), autumn - 3_600_000, autumn + 2 * 3_600_000));
    expect(at("first")).toEqual(["05:30:00"]);
    expect(at("last")).toEqual(["06:30:00"]);
    expect(at("both")).toEqual(["05:30:00", "06:30:00"]);
  });

  it("counts a fixed rate from its anchor, and gives no slots for a fixed delay", () => {
    expect(slotsBetween(every("30s", { anchor: 10_000 }), 0, 75_000)).toEqual([10_000, 40_000, 70_000]);
    expect(slotsBetween(every("30s", { mode: "delay" }), 0, 75_000)).toEqual([]);
  });
});
