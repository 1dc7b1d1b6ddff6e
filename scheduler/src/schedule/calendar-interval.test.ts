import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { caught } from "../../test/support/caught.ts";
import { readSchedule, writtenSchedule } from "../task/kinds/schedule.ts";
import { compileSchedule, every, nextSlots, previousSlots, validateSchedule } from "./schedule.ts";
import { zoneOf } from "./zone.ts";

const zone = "Europe/Berlin";
const ms = (text: string) => Date.parse(text);
/** Formats slots as local times in the zone, such as "2026-03-30 09:00". */
const local = (slots: readonly number[], name = zone) =>
  slots.map((slot) => new Date(slot + zoneOf(name).at(slot).offset).toISOString().slice(0, 16).replace("T", " "));

describe("a calendar period", () => {
  it("keeps its local time across a change of clocks, every second Monday", () => {
    const spec = every("2 weeks", { on: "MON", at: "09:00", zone, from: "2026-03-16T08:00:00Z" });
    const all = ["2026-03-16 09:00", "2026-03-30 09:00", "2026-04-13 09:00", "2026-04-27 09:00"];
    expect(local(nextSlots(spec, 0, 4))).toEqual(all);
    expect(local(previousSlots(spec, ms("2026-04-28T00:00Z"), 9))).toEqual(all.toReversed());
    expect(compileSchedule(spec).words()).toBe(
      "every 2 weeks on Mondays at 09:00, Europe/Berlin, counted from 2026-03-16, from 2026-03-16T08:00:00Z",
    );
  });

  it("counts from its anchor in both directions, or else from a fixed day", () => {
    const anchored = every("3 days", { at: ["18:00", "06:30"], anchor: "2026-01-10" });
    expect(local(nextSlots(anchored, ms("2026-01-07T12:00Z"), 4), "UTC")).toEqual([
      "2026-01-07 18:00",
      "2026-01-10 06:30",
      "2026-01-10 18:00",
      "2026-01-13 06:30",
    ]);
    const fixed = every("2 weeks", { on: ["FRI", "tuesday"] });
    expect(fixed).toMatchObject({ on: ["TUE", "FRI"], anchor: "1970-01-05", at: ["00:00"], zone: "UTC" });
    expect(local(nextSlots(fixed, 0, 3), "UTC")).toEqual(["1970-01-06 00:00", "1970-01-09 00:00", "1970-01-20 00:00"]);
    const instant = every("2 weeks", { on: "MON", anchor: "2026-03-15T23:30:00Z", zone });
    expect(instant).toMatchObject({ anchor: "2026-03-16" });
  });

  it("takes day and time from its start if it names none", () => {
    const from = "2026-01-31T10:15:00+01:00";
    expect(local(nextSlots(every("1 month", { zone, from }), 0, 4))).toEqual([
      "2026-01-31 10:15",
      "2026-02-28 10:15",
      "2026-03-31 10:15",
      "2026-04-30 10:15",
    ]);
    expect(every("1 week", { zone, from })).toMatchObject({ on: ["SAT"], at: ["10:15"] });
    expect(every("1 year", { zone, from })).toMatchObject({ on: ["01-31"] });
  });

  it.each([
    ["3 months", { on: "last", from: "2026-01-01T00:00:00Z" }, ["2026-01-31", "2026-04-30", "2026-07-31"]],
    ["1 quarter", { on: 31, from: "2026-02-01T00:00:00Z" }, ["2026-02-28", "2026-05-31", "2026-08-31"]],
    [
      "1 quarter",
      { on: 31, monthEnd: "skip", from: "2026-02-01T00:00:00Z" },
      ["2026-05-31", "2026-08-31", "2027-05-31"],
    ],
    ["2 months", { on: "TUE#2", anchor: "2026-02-01" }, ["2026-02-10", "2026-04-14", "2026-06-09"]],
    ["5 months", { on: ["FRIL", 15], anchor: "2026-01-01" }, ["2026-01-15", "2026-01-30", "2026-06-15"]],
    ["2 months", { on: "MON#5", anchor: "2026-01-01" }, ["2026-03-30", "2026-11-30", "2027-03-29"]],
    ["1 year", { on: "02-29", anchor: "2026-01-01" }, ["2026-02-28", "2027-02-28", "2028-02-29"]],
    ["1 year", { on: "02-29", monthEnd: "skip", anchor: "2026-01-01" }, ["2028-02-29", "2032-02-29", "2036-02-29"]],
    ["4 years", { on: ["11-03", "01-01"], anchor: "2028-06-01" }, ["2028-01-01", "2028-11-03", "2032-01-01"]],
  ] as const)("%s, %j", (period, options, days) => {
    const slots = nextSlots(every(period, options as object), ms("2025-12-31T23:00Z"), 3);
    expect(slots.map((slot) => new Date(slot).toISOString().slice(0, 10))).toEqual(days);
  });

  it("treats skipped and repeated local times as a cron does", () => {
    const daily = (options: object, after: string) =>
      local(nextSlots(every("1 day", { zone: "America/New_York", ...options }), ms(after), 2), "America/New_York");
    expect(daily({ at: "02:30" }, "2026-03-07T12:00Z")).toEqual(["2026-03-08 03:30", "2026-03-09 02:30"]);
    expect(daily({ at: "02:30", gap: "skip" }, "2026-03-07T12:00Z")).toEqual(["2026-03-09 02:30", "2026-03-10 02:30"]);
    expect(daily({ at: "01:30" }, "2026-10-31T12:00Z")).toEqual(["2026-11-01 01:30", "2026-11-02 01:30"]);
    expect(daily({ at: "01:30", overlap: "both" }, "2026-10-31T12:00Z")).toEqual([
      "2026-11-01 01:30",
      "2026-11-01 01:30",
    ]);
  });

  it("can have an end", () => {
    const from = "2026-03-16T08:00:00Z";
    expect(nextSlots(every("2 weeks", { zone, from, times: 3 }), 0, 9)).toHaveLength(3);
    expect(nextSlots(every("1 day", { from, until: "2026-03-18T08:00:00Z" }), 0, 9)).toHaveLength(3);
    expect(nextSlots(every("10000 years", { on: "01-01" }), -1, 9)).toEqual([0]);
  });

  it.each([
    [() => every("2 weeks"), "on: which day of the week is not said", "on"],
    [() => every("2 weeks", { on: "TUE#2" }), 'on: "TUE#2" is not a day of a week', "on"],
    [() => every("2 weeks", { on: [] }), "on: has no days", "on"],
    [() => every("1 month", { on: 32 }), "on: 32 is not a day of a month", "on"],
    [() => every("1 month", { on: "MON" }), 'on: "MON" is not a day of a month', "on"],
    [() => every("1 year", { on: "02-30" }), 'on: "02-30" is not a day of a year', "on"],
    [() => every("1 day", { on: "MON" }), "on: does not go with days", "on"],
    [() => every("1 day", { at: "25:00" }), 'at: "25:00" is not a time of day', "at"],
    [() => every("1 day", { at: [] }), "at: has 0 times", "at"],
    [() => every("0 days"), "every: 0 days", "every"],
    [() => every("1 month", { on: 15, monthEnd: "skip" }), "monthEnd: every month has the days", "monthEnd"],
    [() => every("1 day", { anchor: "2026-02-30" }), 'anchor: "2026-02-30" is not a date', "anchor"],
    [() => every("1 day", { mode: "delay" }), 'mode: "delay" does not go with', "mode"],
    [() => every("14d", { on: "MON" }), 'on: does not go with every "14d"', "on"],
    [() => every("12 months", { on: 31, monthEnd: "skip", anchor: "2026-02-01" }), "on: there is no such day", "on"],
    [() => every("1 day", { from: "2026-01-02T00:00:00Z", until: "2026-01-01T00:00:00Z" }), "there is no slot", ""],
  ])("refuses invalid periods: %#", (make, message, path) => {
    const error = caught(make);
    expect(error).toMatchObject({ code: "SCHEDULE_INVALID", message: expect.stringContaining(message), path });
    expect(error.hint).not.toBe("" as never);
  });

  it("is written as it was read", () => {
    for (const written of [
      { every: "2 weeks", on: "MON", at: "09:00", zone, anchor: "2026-03-16", from: "2026-03-16T08:00:00.000Z" },
      {
        every: "3 months",
        on: [15, "last"],
        at: ["09:00", "17:30:15"],
        zone: "UTC",
        anchor: "1970-01-05",
        jitter: "5m",
      },
      {
        every: "1 month",
        on: 31,
        at: "00:00",
        zone,
        anchor: "2026-01-01",
        monthEnd: "skip",
        gap: "skip",
        overlap: "last",
      },
      { every: "1 day", at: "00:00", zone: "UTC", anchor: "1970-01-05" },
    ])
      expect(writtenSchedule(readSchedule(written))).toEqual(written);
    const spec = every("2 months", { on: ["FRIL", 31], zone });
    expect(validateSchedule(JSON.parse(JSON.stringify(spec)))).toEqual(spec);
  });

  it.each([
    [every("1 month", { on: [1, "last"], at: "09:00" }), "every month on the 1st and the last day at 09:00, UTC"],
    [
      every("1 month", { on: ["TUE#2", "FRIL"] }),
      "every month on the second Tuesday and the last Friday at 00:00, UTC",
    ],
    [every("1 year", { on: "04-15", at: ["09:00", "17:00"] }), "every year on 15 April at 09:00 and 17:00, UTC"],
    [
      every("1 month", { on: 31, monthEnd: "skip" }),
      "every month on the 31st at 00:00, not in a month that lacks the day, UTC",
    ],
    [every("3 days"), "every 3 days at 00:00, UTC, counted from 1970-01-05"],
  ])("has a description in words: %#", (spec, words) => {
    expect(compileSchedule(spec).words()).toBe(words);
  });

  it("has a next and a previous that undo each other, from any instant", () => {
    const specs = [
      every("2 weeks", { on: ["MON", "SUN"], at: ["02:30", "23:59:59"], zone }),
      every("3 months", { on: [31, "TUE#2"], at: "00:30", zone: "America/Sao_Paulo", overlap: "both" }),
      every("1 year", { on: "12-30", at: "12:00", zone: "Pacific/Apia" }),
      every("5 days", { at: "01:45", zone: "Australia/Lord_Howe", gap: "skip", overlap: "last" }),
    ];
    const moments = fc.integer({ min: 0, max: ms("2190-01-01T00:00Z") });
    fc.assert(
      fc.property(fc.constantFrom(...specs), moments, (spec, moment) => {
        const ahead = nextSlots(spec, moment, 5);
        expect(previousSlots(spec, (ahead.at(-1) as number) + 1, 5).reverse()).toEqual(ahead);
      }),
      { numRuns: 300 },
    );
  });
});
