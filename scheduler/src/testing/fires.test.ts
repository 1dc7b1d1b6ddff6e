import { describe, expect, it } from "vitest";
import { cron, every, manual } from "../schedule.ts";
import { defineTask } from "../task.ts";
import { firesBetween } from "./fires.ts";

const times = (...given: Parameters<typeof firesBetween>) => firesBetween(...given).map((at) => at.toISOString());

describe("what fires between two dates", () => {
  it("is from the first on and before the second", () => {
    expect(times(every("1h"), "2030-01-01T00:00:00Z", "2030-01-01T02:00:00Z")).toEqual([
      "2030-01-01T00:00:00.000Z",
      "2030-01-01T01:00:00.000Z",
    ]);
    expect(times(every("1h"), "2030-01-01T00:30:00Z", "2030-01-01T00:40:00Z")).toEqual([]);
    expect(times(manual, 0, 1e13)).toEqual([]);
  });

  it("follows its zone through changes of clocks", () => {
    const daily = cron("30 2 * * *", { zone: "America/New_York" });
    // 2:30 does not exist on 10 March 2030; by default it fires later by as much as the clocks skip.
    const spring = times({ schedule: daily }, "2030-03-09T00:00:00Z", "2030-03-12T00:00:00Z");
    expect(spring).toEqual(["2030-03-09T07:30:00.000Z", "2030-03-10T07:30:00.000Z", "2030-03-11T06:30:00.000Z"]);
    const skipping = cron("30 2 * * *", { zone: "America/New_York", gap: "skip" });
    expect(times(skipping, "2030-03-09T00:00:00Z", "2030-03-12T00:00:00Z")).toEqual([spring[0], spring[2]]);
  });

  it("is asked of a schedule, of options or of a definition", () => {
    const schedule = cron("0 9 * * MON", { zone: "UTC" });
    const asked = [schedule, { schedule }, defineTask("t", { schedule })].map((of) =>
      times(of, "2030-01-01T00:00:00Z", "2030-01-09T00:00:00Z"),
    );
    expect(asked).toEqual(Array.from({ length: 3 }, () => ["2030-01-07T09:00:00.000Z"]));
    expect(times({}, 0, 1e12)).toEqual([]);
  });

  it("is refused where it cannot be known, or is too much", () => {
    const refused = (code: string) => expect.objectContaining({ code });
    expect(() => firesBetween(every("1h", { mode: "delay" }), 0, 1e12)).toThrow(refused("SCHEDULE_INVALID"));
    expect(() => firesBetween(every("1s"), 0, 1e12)).toThrow(refused("OPTION_INVALID"));
    expect(() => firesBetween(every("1s"), "yesterday", 0)).toThrow(refused("OPTION_INVALID"));
  });
});
