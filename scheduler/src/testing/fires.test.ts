import { describe, expect, it } from "vitest";
import { cron, every, manual } from "../schedule/schedule.ts";
import { defineTask } from "../task/task.ts";
import { firesBetween } from "./fires.ts";

const times = (...given: Parameters<typeof firesBetween>) => firesBetween(...given).map((at) => at.toISOString());

describe("the fires between two dates", () => {
  it("include the first date and exclude the second", () => {
    expect(times(every("1h"), "2030-01-01T00:00:00Z", "2030-01-01T02:00:00Z")).toEqual([
      "2030-01-01T00:00:00.000Z",
      "2030-01-01T01:00:00.000Z",
    ]);
    expect(times(every("1h"), "2030-01-01T00:30:00Z", "2030-01-01T00:40:00Z")).toEqual([]);
    expect(times(manual, 0, 1e13)).toEqual([]);
  });

  it("follow the zone through changes of clocks", () => {
    const daily = cron("30 2 * * *", { zone: "America/New_York" });
    // 2:30 does not exist on 10 March 2030. By default the slot fires later by the length of the gap.
    const spring = times({ schedule: daily }, "2030-03-09T00:00:00Z", "2030-03-12T00:00:00Z");
    expect(spring).toEqual(["2030-03-09T07:30:00.000Z", "2030-03-10T07:30:00.000Z", "2030-03-11T06:30:00.000Z"]);
    const skipping = cron("30 2 * * *", { zone: "America/New_York", gap: "skip" });
    expect(times(skipping, "2030-03-09T00:00:00Z", "2030-03-12T00:00:00Z")).toEqual([spring[0], spring[2]]);
  });

  it("are computed for a schedule, for options or for a definition", () => {
    const schedule = cron("0 9 * * MON", { zone: "UTC" });
    const asked = [schedule, { schedule }, defineTask("t", { schedule })].map((of) =>
      times(of, "2030-01-01T00:00:00Z", "2030-01-09T00:00:00Z"),
    );
    expect(asked).toEqual(Array.from({ length: 3 }, () => ["2030-01-07T09:00:00.000Z"]));
    expect(times({}, 0, 1e12)).toEqual([]);
  });

  it("leave out slots skipped by a calendar or blackout, and give the due times of delayed slots", () => {
    const schedule = cron("0 9 * * *", { zone: "UTC" });
    const [from, to] = ["2030-12-20T00:00:00Z", "2030-12-27T00:00:00Z"];
    const days = (...of: number[]) => of.map((day) => `2030-12-${day}T09:00:00.000Z`);
    const calendar = { zone: "UTC", weekend: [0, 6], holidays: ["2030-12-25"] };
    const options = { schedule, calendar: { name: "de" } };
    for (const of of [options, defineTask("t", options)])
      expect(times(of, from, to, { calendar })).toEqual(days(20, 23, 24, 26));
    const moved = { schedule, calendar: { name: "de", otherwise: "next" as const } };
    expect(times(moved, "2030-12-25T00:00:00Z", to, { calendar })).toEqual(days(26));
    // biome-ignore lint/suspicious/noThenProperty: never awaited.
    const noon = { from: "08:00", to: "12:00", then: "delay" as const };
    const delayed = { schedule, blackout: [noon] };
    for (const of of [delayed, defineTask("t", delayed)])
      expect(times(of, "2030-12-20T10:00:00Z", "2030-12-21T10:00:00Z")).toEqual(["2030-12-20T12:00:00.000Z"]);
    expect(times({ schedule, blackout: [{ from: "08:00", to: "12:00" }] }, from, to)).toEqual([]);
    // biome-ignore lint/suspicious/noThenProperty: never awaited.
    const long = { from: "2030-12-01T00:00:00Z", to: "2030-12-20T00:00:00Z", then: "delay" as const };
    expect(times({ schedule, blackout: [long] }, from, "2030-12-20T01:00:00Z")).toHaveLength(19);
    expect(() => times(options, from, to)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });

  it("are refused if they cannot be known or are too many", () => {
    const refused = (code: string) => expect.objectContaining({ code });
    expect(() => firesBetween(every("1h", { mode: "delay" }), 0, 1e12)).toThrow(refused("SCHEDULE_INVALID"));
    expect(() => firesBetween(every("1s"), 0, 1e12)).toThrow(refused("OPTION_INVALID"));
    expect(() => firesBetween(every("1s"), "yesterday", 0)).toThrow(refused("OPTION_INVALID"));
  });
});
