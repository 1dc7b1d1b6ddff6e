import { describe, expect, it } from "vitest";
import { caught } from "../../../test/support/caught.ts";
import { readSchedule } from "../../task/kinds/schedule.ts";
import { compileSchedule, cron, every, nextSlots, rrule } from "../schedule.ts";
import { scheduleOfText } from "./schedule-text.ts";
import { spreadCron } from "./spread-cron.ts";

const zone = "Europe/Berlin";

describe("a schedule written as one text", () => {
  it.each([
    ["0 9 * * *", cron("0 9 * * *", { zone })],
    ["@daily", cron("@daily", { zone })],
    ["TZ=Asia/Tokyo 0 9 * * *", cron("0 9 * * *", { zone: "Asia/Tokyo" })],
    ["CRON_TZ=Asia/Tokyo @daily", cron("@daily", { zone: "Asia/Tokyo" })],
    ["@every 1h30m", every("90m")],
    ["TZ=Asia/Tokyo @every 5m", every("5m")],
    ["every weekday at 9:30", cron("30 9 * * MON-FRI", { zone })],
    ["every weekday at 9:30, Asia/Tokyo", cron("30 9 * * MON-FRI", { zone: "Asia/Tokyo" })],
    ["RRULE:FREQ=DAILY;COUNT=3\nDTSTART:20260106T090000Z", rrule("FREQ=DAILY;COUNT=3", { start: "2026-01-06T09:00" })],
    ["H H * * *", cron(spreadCron("H H * * *", "nightly"), { zone })],
    ["H H * * *, Asia/Tokyo", cron(spreadCron("H H * * *", "nightly"), { zone: "Asia/Tokyo" })],
    ["0 */2 * * * America/New_York", cron("0 */2 * * *", { zone: "America/New_York" })],
    ["0 0 9 * * MON America/Port_of_Spain", cron("0 0 9 * * MON", { zone: "America/Port_of_Spain" })],
    ["@daily UTC", cron("@daily", { zone: "UTC" })],
    ["0 0 9 1 MAY MON-FRI", cron("0 0 9 1 MAY MON-FRI", { zone })],
    ["0 9 LW * ?", cron("0 9 LW * ?", { zone })],
    ["every hour at minute 12", cron("12 * * * *", { zone })],
    ["8:00 am Monday through Friday", cron("0 8 * * MON-FRI", { zone })],
    ["9am Monday, Wednesday, Friday , Asia/Tokyo", cron("0 9 * * MON,WED,FRI", { zone: "Asia/Tokyo" })],
    ["12:30 , 18:30 1st , 15th", cron("30 12,18 1,15 * *", { zone })],
    ["10 pm Saturday thru Sunday weekly", cron("0 22 * * SUN,SAT", { zone })],
    ["1 , 15 January noon yearly", cron("0 12 1,15 1 *", { zone })],
    // RFC 5545: a start without TZID and without Z is a local time in the zone of its reader.
    ["DTSTART:20260106T090000\nRRULE:FREQ=DAILY", rrule("FREQ=DAILY", { start: "2026-01-06T09:00", zone })],
    ["DTSTART;VALUE=DATE:20260106\nRRULE:FREQ=DAILY", rrule("FREQ=DAILY", { start: "2026-01-06", zone })],
    [
      "DTSTART;TZID=Asia/Tokyo:20260106T090000\nRRULE:FREQ=DAILY",
      rrule("FREQ=DAILY", { start: "2026-01-06T09:00", zone: "Asia/Tokyo" }),
    ],
    [
      "TZ=Asia/Tokyo DTSTART:20260106T000000Z\nRRULE:FREQ=DAILY",
      rrule("FREQ=DAILY", { start: "2026-01-06T09:00", zone: "Asia/Tokyo" }),
    ],
    [
      "EXDATE:20260107T090000\nDTSTART:20260106T090000\nRRULE:INTERVAL=2;FREQ=DAILY",
      rrule("FREQ=DAILY;INTERVAL=2", { start: "2026-01-06T09:00", exdate: ["2026-01-07T09:00"], zone }),
    ],
  ])("%j", (text, spec) => {
    expect(scheduleOfText(text, { zone, name: "nightly" })).toEqual(spec);
  });

  it("is also accepted in a task file, in UTC if it names no zone", () => {
    expect(readSchedule("CRON_TZ=Asia/Tokyo 0 9 * * *")).toEqual(cron("0 9 * * *", { zone: "Asia/Tokyo" }));
    expect(readSchedule("@every 1h")).toEqual(every("1h"));
    expect(caught(() => readSchedule("FREQ=DAILY"))).toMatchObject({ code: "RRULE_INVALID", path: "start" });
  });

  it.each([
    every("2 weeks", { on: "MON", at: "09:00", zone, anchor: "2026-03-16" }),
    every("3 days", { at: ["06:30", "18:00:15"], zone, anchor: "2026-01-10" }),
    every("3 months", { on: [1, 15, "last"], at: "09:00", zone, anchor: "2026-01-31" }),
    every("2 months", { on: ["TUE#2", "FRIL"], anchor: "2026-01-31" }),
    every("2 months", { on: 31, monthEnd: "skip", anchor: "2026-01-31" }),
    every("4 years", { on: "11-03", at: "12:00", anchor: "2028-01-01" }),
  ])("is parsed back from the description of a calendar period: %#", (spec) => {
    expect(scheduleOfText(compileSchedule(spec).words())).toEqual(spec);
  });

  it.each([
    [
      "every other week on monday at noon, counted from 2026-03-16",
      "every 2 weeks on Mondays at 12:00, UTC, counted from 2026-03-16",
    ],
    ["every third day at 9am starting on 2026-03-16", "every 3 days at 09:00, UTC, counted from 2026-03-16"],
    [
      "every two quarters on day 5 at 8:00, counted from 2026-03-16",
      "every 6 months on the 5th at 08:00, UTC, counted from 2026-03-16",
    ],
  ])("%s", (text, words) => {
    expect(compileSchedule(scheduleOfText(text)).words()).toBe(words);
  });

  it.each([
    ["every 2 weeks on Mondays at 9:00", "it does not say which week is the first"],
    ["every other day at 9:00", "it does not say which day is the first"],
    ["every 2 weeks at 9:00, counted from 2026-03-16", "its days or times are not of a week"],
    ["every 2 weeks on the last day at 9:00, counted from 2026-03-16", "its days or times are not of a week"],
    ["every 2 months on Mondays at 9:00, counted from 2026-03-16", "its days or times are not of a month"],
    ["every 2 months on day 1 of June at 9:00, counted from 2026-03-16", "its days or times are not of a month"],
    ["every 2 days every minute, counted from 2026-03-16", "its days or times are not of a day"],
    ["H * * * *", "H is a value of each task's own"],
    ["TZ=Berlin 0 9 * * *", '"Berlin" is not a zone'],
    ["0 9 * * MOM", "MOM"],
    ["0 0 9 * * MON/TUE", "MON/TUE"],
    ["0 9 * * * Europe/Berlim", '"Europe/Berlim" is not a zone'],
  ])("%s is refused", (text, message) => {
    const error = caught(() => scheduleOfText(text));
    expect(["CRON_INVALID", "ZONE_UNKNOWN"]).toContain(error.code);
    expect(error.message).toContain(message);
    expect(error.hint).not.toBe("" as never);
  });
});

describe("a text that names two zones", () => {
  it.each([
    ["TZ=Asia/Tokyo 0 9 * * * Europe/Berlin", "Asia/Tokyo and Europe/Berlin"],
    ["TZ=Asia/Tokyo CRON_TZ=Europe/Berlin 0 9 * * *", "Asia/Tokyo and Europe/Berlin"],
    ["TZ=Asia/Tokyo every weekday at 9:30, Europe/Berlin", "Asia/Tokyo and Europe/Berlin"],
    ["TZ=Asia/Tokyo every 2 days at 9:00, UTC, counted from 2026-03-16", "Asia/Tokyo and UTC"],
  ])("%s is refused", (text, zones) => {
    const error = caught(() => scheduleOfText(text));
    expect(error).toMatchObject({ code: "SCHEDULE_INVALID", hint: "Leave one of them out." });
    expect(error.message).toContain(zones);
  });

  it.each([
    ["TZ=US/Eastern 0 9 * * * America/New_York", "America/New_York"],
    ["TZ=Etc/UTC 0 9 * * * UTC", "UTC"],
    ["TZ=GMT CRON_TZ=Etc/UTC 0 9 * * *", "Etc/UTC"],
  ])("%s is accepted, because both names are of one zone", (text, zone) => {
    expect(scheduleOfText(text)).toEqual(cron("0 9 * * *", { zone }));
  });

  it("is accepted if both are the same, also for a recurrence rule", () => {
    expect(scheduleOfText("TZ=Asia/Tokyo 0 9 * * * Asia/Tokyo")).toEqual(cron("0 9 * * *", { zone: "Asia/Tokyo" }));
    const rule = (tz: string) => `TZ=${tz} DTSTART;TZID=Asia/Tokyo:20260106T090000\nRRULE:FREQ=DAILY`;
    expect(scheduleOfText(rule("Asia/Tokyo"))).toMatchObject({ zone: "Asia/Tokyo" });
    expect(caught(() => scheduleOfText(rule("Europe/Berlin"))).message).toContain("Asia/Tokyo");
  });
});

describe("H in a cron expression", () => {
  it("is constant for a name, within its field, and spread over names", () => {
    expect(spreadCron("H H(0-7) * * *", "nightly")).toBe(spreadCron("H H(0-7) * * *", "nightly"));
    const minutes = new Set<number>();
    for (let at = 0; at < 2_000; at++) {
      const [minute, hour, day, month, weekday] = spreadCron("H H(20-23) H H H", `task ${at}`).split(" ").map(Number);
      minutes.add(minute as number);
      expect(minute).toBeLessThan(60);
      expect([20, 21, 22, 23]).toContain(hour);
      expect(day).toBeLessThan(29);
      expect(day).toBeGreaterThan(0);
      expect(month).toBeGreaterThan(0);
      expect(month).toBeLessThan(13);
      expect(weekday).toBeLessThan(7);
    }
    expect(minutes.size).toBe(60);
  });

  it("repeats by its step, and leaves a cron without H unchanged", () => {
    for (let at = 0; at < 200; at++) {
      const quarters = cron(spreadCron("H/15 * * * *", `task ${at}`));
      expect(nextSlots(quarters, 0, 9)).toHaveLength(9);
      expect(nextSlots(quarters, 3_600_000 - 1, 8).map((slot) => slot % 900_000)).toEqual(
        Array(8).fill((nextSlots(quarters, 0, 1)[0] as number) % 900_000),
      );
      cron(spreadCron("H(0-29)/10 H/25 H(1-3)/2 H,6 1,H(5-6)", `task ${at}`));
    }
    expect(spreadCron("0 9 * * MON-FRI", "nightly")).toBe("0 9 * * MON-FRI");
    expect(spreadCron("0 0 9 * * *", "nightly")).toBe("0 0 9 * * *");
  });

  it.each(["H(30-10) * * * *", "H(0-60) * * * *", "H/0 * * * *", "H- * * * *", "* * H(1-29) * *"])(
    "%s is refused",
    (text) => {
      expect(caught(() => spreadCron(text, "a"))).toMatchObject({
        code: "CRON_INVALID",
        message: expect.stringContaining("has no value"),
      });
    },
  );
});
