import { describe, expect, it } from "vitest";
import { caught } from "../../../test/support/caught.ts";
import { cutOffAfter } from "../../base/cut-off.ts";
import { readSchedule, writtenSchedule } from "../../task/kinds/schedule.ts";
import { compileSchedule, nextSlots, previousSlots, rrule, type ScheduleSpec, validateSchedule } from "../schedule.ts";
import { zoneOf } from "../zone.ts";

const berlin = "Europe/Berlin";
const newYork = "America/New_York";
const ms = (text: string) => Date.parse(text);
const local = (slots: readonly number[], zone: string) =>
  slots.map((slot) => new Date(slot + zoneOf(zone).at(slot).offset).toISOString().slice(0, 16).replace("T", " "));
const first = (spec: ScheduleSpec, count: number, zone = "UTC") => local(nextSlots(spec, 0, count), zone);
const dates = (spec: ScheduleSpec, count: number) => first(spec, count).map((text) => text.slice(0, 10));

describe("a recurrence rule", () => {
  it("is read from options or from lines, with the same result", () => {
    const options = rrule("RRULE:freq=weekly;BYDAY=tu;interval=2;", {
      start: "2026-01-06T09:00",
      zone: berlin,
      exdate: ["2026-02-03", "2026-01-20T09:00:00"],
      rdate: ["2026-01-08T10:00"],
    });
    const lines = rrule(
      "DTSTART;TZID=Europe/Berlin:20260106T090000\r\nRRULE:FREQ=WEEKLY;INTERVAL=2;\r\n BYDAY=TU\nRDATE;TZID=Europe/Berlin:20260108T100000\nEXDATE;TZID=Europe/Berlin:20260120T090000\nEXDATE;VALUE=DATE:20260203",
    );
    expect(options).toEqual({
      type: "rrule",
      rule: "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU",
      start: "2026-01-06T09:00:00",
      zone: berlin,
      rdate: ["2026-01-08T10:00:00"],
      exdate: ["2026-01-20T09:00:00", "2026-02-03"],
      gap: "shift",
      overlap: "first",
    });
    expect(lines).toEqual(options);
    expect(first(lines, 4, berlin)).toEqual([
      "2026-01-06 09:00",
      "2026-01-08 10:00",
      "2026-02-17 09:00",
      "2026-03-03 09:00",
    ]);
    expect(local(previousSlots(lines, ms("2026-03-01T00:00Z"), 9), berlin)).toEqual([
      "2026-02-17 09:00",
      "2026-01-08 10:00",
      "2026-01-06 09:00",
    ]);
  });

  // Examples from RFC 5545, section 3.8.5.3.
  it.each([
    ["19970902", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["1997-09-30", "1997-10-31", "1997-11-28"]],
    ["19970902", "FREQ=MONTHLY;INTERVAL=2;BYDAY=1SU,-1SU", ["1997-09-07", "1997-09-28", "1997-11-02", "1997-11-30"]],
    [
      "19970101",
      "FREQ=YEARLY;INTERVAL=3;BYYEARDAY=1,100,200",
      ["1997-01-01", "1997-04-10", "1997-07-19", "2000-01-01"],
    ],
    ["19970519", "FREQ=YEARLY;BYDAY=20MO", ["1997-05-19", "1998-05-18", "1999-05-17"]],
    ["19970512", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", ["1997-05-12", "1998-05-11", "1999-05-17"]],
    ["19970902", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", ["1998-02-13", "1998-03-13", "1998-11-13", "1999-08-13"]],
    ["19961105", "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", ["1996-11-05", "2000-11-07"]],
    [
      "19970805",
      "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
      ["1997-08-05", "1997-08-10", "1997-08-19", "1997-08-24"],
    ],
    [
      "19970805",
      "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
      ["1997-08-05", "1997-08-17", "1997-08-19", "1997-08-31"],
    ],
    [
      "20070115",
      "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
      ["2007-01-15", "2007-01-30", "2007-02-15", "2007-03-15", "2007-03-30"],
    ],
  ])("%s %s", (start, rule, wanted) => {
    expect(dates(rrule(rule, { start }), wanted.length)).toEqual(wanted);
  });

  it("is right where dateutil is wrong or has another interpretation", () => {
    // Week 53 includes its days in the next year. Week −1 is the last week of the year.
    const week53 = "FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO,SU";
    expect(dates(rrule(week53, { start: "20200101" }), 4)).toEqual([
      "2020-12-28",
      "2021-01-03",
      "2026-12-28",
      "2027-01-03",
    ]);
    const lastButOne = "FREQ=YEARLY;BYWEEKNO=-52;BYDAY=SU";
    expect(dates(rrule(lastButOne, { start: "20210101" }), 2)).toEqual(["2021-01-10", "2022-01-09"]);
    // The rule means all Mondays and the first Tuesday. The Python library dateutil instead requires that a day matches both.
    expect(dates(rrule("FREQ=MONTHLY;BYDAY=MO,1TU", { start: "20260101" }), 3)).toEqual([
      "2026-01-05",
      "2026-01-06",
      "2026-01-12",
    ]);
    // BYSETPOS counts all days of the first week, including those before the start.
    const firstOfWeek = "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1";
    expect(dates(rrule(firstOfWeek, { start: "20260107" }), 2)).toEqual(["2026-01-12", "2026-01-19"]);
  });

  it("ends by UNTIL (local time, instant or date) or by COUNT; dates from RDATE continue", () => {
    const daily = (until: string, start = "2026-01-01T09:00") =>
      rrule(`FREQ=DAILY;UNTIL=${until}`, { start, zone: berlin });
    expect(first(daily("20260103T090000"), 9, berlin)).toHaveLength(3);
    expect(first(daily("20260103T080000Z"), 9, berlin)).toHaveLength(3);
    expect(first(daily("20260103T075959Z"), 9, berlin)).toHaveLength(2);
    expect(first(daily("20260103", "2026-01-01"), 9, berlin)).toHaveLength(3);
    const counted = rrule("FREQ=DAILY;COUNT=3", {
      start: "2026-01-01",
      exdate: ["2026-01-02"],
      rdate: ["2026-02-01T12:00:00Z"],
    });
    expect(first(counted, 9)).toEqual(["2026-01-01 00:00", "2026-01-03 00:00", "2026-02-01 12:00"]);
    const added = rrule("FREQ=DAILY;UNTIL=20260101T080000Z", {
      start: "2026-01-01T09:00",
      zone: berlin,
      rdate: ["2026-05-01T09:00"],
    });
    expect(first(added, 9, berlin)).toEqual(["2026-01-01 09:00", "2026-05-01 09:00"]);
  });

  it("has bounds as other kinds do, and takes its start from them if needed", () => {
    const spec = rrule("FREQ=WEEKLY;BYDAY=MO", { zone: berlin, from: "2026-03-16T08:00:00Z", times: 3 });
    expect(spec).toMatchObject({ start: "2026-03-16T09:00:00" });
    expect(first(spec, 9, berlin)).toEqual(["2026-03-16 09:00", "2026-03-23 09:00", "2026-03-30 09:00"]);
    expect(rrule("FREQ=DAILY", { zone: newYork, start: "2026-01-01T00:00:00Z" })).toMatchObject({
      start: "2025-12-31T19:00:00",
    });
    expect(rrule("DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY")).toMatchObject({
      zone: "UTC",
      start: "2026-01-01T09:00:00",
    });
  });

  it("treats skipped and repeated local times as a cron does", () => {
    const daily = (start: string, options = {}) => rrule("FREQ=DAILY", { start, zone: newYork, ...options });
    const spring = (spec: ScheduleSpec) => local(nextSlots(spec, ms("2026-03-07T12:00Z"), 2), newYork);
    expect(spring(daily("2026-01-01T02:30"))).toEqual(["2026-03-08 03:30", "2026-03-09 02:30"]);
    expect(spring(daily("2026-01-01T02:30", { gap: "skip" }))).toEqual(["2026-03-09 02:30", "2026-03-10 02:30"]);
    const hourly = rrule("FREQ=HOURLY", { start: "2026-01-01T00:30", zone: newYork });
    expect(hourly).toMatchObject({ gap: "skip", overlap: "both" });
    const hours = nextSlots(hourly, ms("2026-11-01T03:45Z"), 6);
    expect(hours.map((slot, at) => slot - (hours[at - 1] ?? slot - 3_600_000))).toEqual(Array(6).fill(3_600_000));
    expect(rrule("FREQ=HOURLY;INTERVAL=2", { start: "2026-01-01" })).toMatchObject({ gap: "shift", overlap: "first" });
  });

  it("ends if it never recurs, without a search from its start", () => {
    const start = "1970-01-01T00:00:00";
    // Each rule takes a few milliseconds; a search through every second since 1970 would take minutes.
    const within = <T>(work: () => T) => cutOffAfter(60_000, work);
    for (const rule of [
      "FREQ=SECONDLY;INTERVAL=2;BYSECOND=1",
      "FREQ=SECONDLY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=30",
      "FREQ=MINUTELY;INTERVAL=1440;BYHOUR=5",
      "FREQ=HOURLY;INTERVAL=24;BYHOUR=1",
      "FREQ=SECONDLY;BYSETPOS=2;BYSECOND=1",
      "FREQ=DAILY;BYMONTH=4;BYMONTHDAY=31",
      "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30",
      "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-30",
      "FREQ=YEARLY;BYYEARDAY=366;BYMONTH=1",
    ])
      expect(caught(() => within(() => rrule(rule, { start })))).toMatchObject({ code: "RRULE_NEVER", path: "rule" });
    for (const rule of [
      "FREQ=SECONDLY;INTERVAL=7",
      "FREQ=MINUTELY;INTERVAL=90",
      "FREQ=DAILY;INTERVAL=3",
      "FREQ=YEARLY;INTERVAL=100",
    ]) {
      const schedule = compileSchedule(rrule(rule, { start }));
      for (let year = 1980; year < 2170; year += 10) {
        const next = within(() => schedule.next(Date.UTC(year, 5, 1))) as number;
        expect(within(() => schedule.previous(next + 1))).toBe(next);
      }
    }
  });

  it.each([
    ["FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "every 2 weeks on Tuesdays at 09:00, UTC, counted from 2026-01-06 09:00:00"],
    ["FREQ=DAILY;BYHOUR=9,17", "every day at 09:00 and 17:00, UTC"],
    [
      "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
      "every month on weekdays at 09:00, of these only the last in each month, UTC",
    ],
    ["FREQ=MONTHLY;BYDAY=2TU,-1FR", "every month on the last Friday and the second Tuesday of the month at 09:00, UTC"],
    ["FREQ=MONTHLY;BYMONTHDAY=1,15,-1", "every month on days 1 and 15 and the last day of the month at 09:00, UTC"],
    ["FREQ=YEARLY;BYMONTH=3,4,5;BYDAY=SU", "every year on Sundays in March to May at 09:00, UTC"],
    ["FREQ=YEARLY", "every year on 6 January at 09:00, UTC"],
    ["FREQ=MINUTELY;INTERVAL=90", "every 90 minutes, UTC, counted from 2026-01-06 09:00:00"],
    ["FREQ=HOURLY;BYDAY=SA", "every hour on Saturdays at minute 0, UTC, counted from 2026-01-06 09:00:00"],
    [
      "FREQ=WEEKLY;INTERVAL=2;WKST=SU;COUNT=10",
      "every 2 weeks on Tuesdays at 09:00, UTC, weeks begin on Sunday, counted from 2026-01-06 09:00:00, 10 times",
    ],
    [
      "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
      "every year on Mondays that are also days of week 20 of the year at 09:00, UTC",
    ],
  ])("%s has a description in words", (rule, words) => {
    expect(compileSchedule(rrule(rule, { start: "2026-01-06T09:00" })).words()).toBe(words);
  });

  it("is written as it was read", () => {
    for (const written of [
      { rrule: "FREQ=DAILY;UNTIL=20271231T235959", start: "2026-01-06T09:00:00", zone: berlin },
      {
        rrule: "FREQ=MONTHLY;COUNT=9;BYSETPOS=-1;BYDAY=MO,2TU;WKST=SU",
        start: "2026-01-06",
        zone: newYork,
        rdate: ["2026-01-07", "2026-02-01T10:00:00Z"],
        exdate: ["2026-03-01"],
        gap: "skip",
        overlap: "both",
        jitter: "30s",
        from: "2026-01-01T00:00:00.000Z",
        times: 3,
      },
    ])
      expect(writtenSchedule(readSchedule(written))).toEqual(written);
    const spec = rrule("FREQ=HOURLY;BYMINUTE=5,35", { start: "2026-01-06" });
    expect(validateSchedule(JSON.parse(JSON.stringify(spec)))).toEqual(spec);
  });

  const start = "2026-01-06T09:00";
  it.each([
    ["BYDAY=TU", {}, "FREQ is missing", "rule"],
    ["FREQ=FORTNIGHTLY", {}, "FREQ=FORTNIGHTLY is not a frequency", "rule"],
    ["FREQ=DAILY;FREQ=DAILY", {}, "FREQ is there twice", "rule"],
    ["FREQ=DAILY;BYDAYS=TU", {}, 'did you mean "BYDAY"', "rule"],
    ["FREQ=DAILY;BYHOUR=24", {}, 'BYHOUR cannot be "24"', "rule"],
    ["FREQ=DAILY;BYSECOND=60", {}, 'BYSECOND cannot be "60"', "rule"],
    ["FREQ=DAILY;INTERVAL=0", {}, "INTERVAL=0 is not a whole number from 1", "rule"],
    ["FREQ=DAILY;COUNT=10001", {}, "COUNT=10001 is not a whole number from 1 to 10000", "rule"],
    ["FREQ=DAILY;COUNT=3;UNTIL=20270101T000000", {}, "UNTIL and COUNT do not go together", "rule"],
    ["FREQ=DAILY;UNTIL=20270101", {}, "UNTIL is a date, and the start has a time", "rule"],
    ["FREQ=DAILY;UNTIL=tomorrow", {}, 'UNTIL: "TOMORROW" is not a time', "rule"],
    ["FREQ=WEEKLY;BYDAY=2TU", {}, "a number in BYDAY does not go with FREQ=WEEKLY", "rule"],
    ["FREQ=MONTHLY;BYDAY=6TU", {}, "no month has a sixth of a weekday", "rule"],
    ["FREQ=MONTHLY;BYDAY=XX", {}, 'BYDAY cannot be "XX"', "rule"],
    ["FREQ=MONTHLY;BYWEEKNO=3;BYDAY=MO", {}, "BYWEEKNO does not go with FREQ=MONTHLY", "rule"],
    ["FREQ=YEARLY;BYWEEKNO=3", {}, "BYWEEKNO without BYDAY", "rule"],
    ["FREQ=YEARLY;BYWEEKNO=3;BYDAY=1MO", {}, "a number in BYDAY does not go with BYWEEKNO", "rule"],
    ["FREQ=DAILY;BYYEARDAY=3", {}, "BYYEARDAY does not go with FREQ=DAILY", "rule"],
    ["FREQ=WEEKLY;BYMONTHDAY=3", {}, "BYMONTHDAY does not go with FREQ=WEEKLY", "rule"],
    ["FREQ=DAILY;BYSETPOS=1", {}, "BYSETPOS without another BY part", "rule"],
    ["FREQ=MONTHLY;SKIP=BACKWARD", {}, "SKIP (RFC 7529) is not supported", "rule"],
    ["FREQ=DAILY;WKST=X", {}, 'WKST cannot be "X"', "rule"],
    ["nothing", {}, "is not NAME=VALUE", "rule"],
    ["", {}, "is not a text of 1 to", "rule"],
    ["FREQ=DAILY\nFREQ=DAILY", {}, "RRULE is there twice", "rule"],
    ["DTSTART:20260101T000000", { start: undefined }, "there is no RRULE", "rule"],
    ["RRULE:FREQ=DAILY\nEXRULE:FREQ=WEEKLY", {}, '"EXRULE" is not a line of a recurrence', "rule"],
    ["RRULE:FREQ=DAILY\nRDATE;VALUE=PERIOD:20260101T000000/P1D", {}, "RDATE has the parameter", "rule"],
    ["DTSTART:20260101T000000\nFREQ=DAILY", {}, "start and DTSTART are both given", "start"],
    ["FREQ=DAILY", { start: undefined }, "there is no start", "start"],
    ["FREQ=DAILY", { start: "2026-02-30T09:00" }, "is not a time from 1900 to 2200", "start"],
    ["FREQ=DAILY", { start: 1_500 }, "start is not in whole seconds", "start"],
    ["FREQ=DAILY", { rdate: "2026-01-01" }, "rdate is not a list", "rdate"],
    ["FREQ=DAILY", { rdate: ["2026-01-01"] }, "rdate has a date without a time", "rdate"],
    ["FREQ=DAILY", { exdate: ["2026-01-01", "soon"] }, 'exdate: "soon" is not a time', "exdate[1]"],
    ["FREQ=DAILY", { exdate: Array(1_001).fill("2026-01-01") }, "exdate has 1001 times", "exdate"],
    [
      "DTSTART;TZID=Europe/Berlin:20260101T000000\nRRULE:FREQ=DAILY",
      { start: undefined, zone: "UTC" },
      "DTSTART is in Europe/Berlin",
      "zone",
    ],
  ])("%s %j is refused", (rule, options, message, path) => {
    const error = caught(() => rrule(rule, { start, ...options } as object));
    expect(error).toMatchObject({ code: "RRULE_INVALID", message: expect.stringContaining(message), path });
    expect(error.hint).not.toBe("" as never);
  });

  it("refuses an unknown zone, and times before 1970", () => {
    expect(caught(() => rrule("FREQ=DAILY", { start, zone: "Berlin" }))).toMatchObject({
      code: "ZONE_UNKNOWN",
      path: "zone",
    });
    expect(caught(() => rrule("FREQ=DAILY;COUNT=3", { start: "1960-01-01" })).code).toBe("RRULE_NEVER");
  });
});
