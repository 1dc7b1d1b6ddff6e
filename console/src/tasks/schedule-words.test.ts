import { every, parseCron, validateSchedule } from "carillon/schedule";
import { expect, test } from "vitest";
import { wordsIn } from "../messages/texts.ts";
import { cronInChinese, scheduleWords } from "./schedule-words.ts";

const zh = wordsIn("zh", "Asia/Tokyo");

test.each([
  ["* * * * *", "每分钟"],
  ["*/5 * * * *", "每 5 分钟"],
  ["*/10 * * * * *", "每 10 秒"],
  ["0 3 * * *", "每天 03:00"],
  ["30 9,18 * * 1-5", "周一至周五 09:30、18:30"],
  ["0 0 1,15 * *", "每月 1 日、15 日 00:00"],
  ["0 0 0 L * ?", "每月 最后一天 00:00"],
  ["15 * * * *", "每小时的第 15 分"],
  ["*/15 8-18 * * 1", "每周一 8 至 18 时每 15 分钟"],
  ["0 0 4 7 *", "7 月 4 日 00:00"],
])("%s is %s in words", (expression, said) => {
  expect(cronInChinese(parseCron(expression).fields)).toBe(said);
});

test("a schedule without a short sentence is shown as written", () => {
  const schedule = {
    type: "cron",
    expression: "0 0 * * 1#2",
    zone: "Asia/Shanghai",
    gap: "shift",
    overlap: "first",
  } as const;
  expect(scheduleWords(schedule, "…", zh)).toBe("0 0 * * 1#2 · Asia/Shanghai");
  expect(scheduleWords({ type: "every", everyMs: 5_000, mode: "rate" }, "every 5 seconds", zh)).toBe("每 5 秒一次");
  expect(scheduleWords({ type: "manual" }, "manual", wordsIn("en", "UTC"))).toBe("manual");
});

test.each([
  [
    every("2 weeks", { on: ["MON", "FRI"], at: "09:00", zone: "Asia/Shanghai", anchor: "2026-03-16" }),
    "每 2 周 周一、周五 09:00 · Asia/Shanghai，从 2026-03-16 起算",
  ],
  [
    every("1 month", { on: [15, "last", "TUE#2", "FRIL"], at: ["09:00", "17:30"] }),
    "每月 15 日、最后一天、第 2 个周二、最后一个周五 09:00、17:30 · UTC",
  ],
  [every("3 days", { at: "06:00", anchor: "2026-03-16" }), "每 3 天 06:00 · UTC，从 2026-03-16 起算"],
  [every("1 year", { on: "04-15" }), "每年 4 月 15 日 00:00 · UTC"],
])("a calendar period in words: %#", (schedule, said) => {
  expect(scheduleWords(schedule, "…", zh)).toBe(said);
});

test.each([
  ["FREQ=DAILY;BYHOUR=9,17", "每天 09:00、17:00 · UTC"],
  ["FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "每 2 周 周二 09:00 · UTC，从 2026-01-06 09:00:00 起算"],
  ["FREQ=WEEKLY", "每周 周二 09:00 · UTC"],
  ["FREQ=MONTHLY;BYDAY=2TU,-1FR", "每月 最后一个周五、第 2 个周二 09:00 · UTC"],
  ["FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3", "每月 最后一天 09:00 · UTC，从 2026-01-06 09:00:00 起算，共 3 次"],
  ["FREQ=YEARLY;UNTIL=20300101T000000", "每年 1 月 6 日 09:00 · UTC，至 2030-01-01 00:00 止"],
  ["FREQ=HOURLY;INTERVAL=5", "FREQ=HOURLY;INTERVAL=5 · UTC，从 2026-01-06 09:00:00 起算"],
])("a recurrence rule in words: %s", (rule, said) => {
  const schedule = validateSchedule({ type: "rrule", rule, start: "2026-01-06T09:00" });
  expect(scheduleWords(schedule, "…", zh)).toBe(said);
});

test("times are shown in the schedule's zone; without one, in the viewer's zone, which is then named", () => {
  const once = validateSchedule({ type: "at", atMs: Date.parse("2027-03-08T16:00:00Z") });
  expect(scheduleWords(once, "once, at 2027-03-08T16:00:00Z", wordsIn("en", "Asia/Tokyo"))).toBe(
    "once, at Tue 9 Mar 2027 01:00, Asia/Tokyo",
  );
  expect(scheduleWords(once, "…", zh)).toBe("一次：2027年3月9日周二 01:00（Asia/Tokyo）");
  const bound = validateSchedule({
    type: "cron",
    expression: "0 3 * * *",
    zone: "Europe/Berlin",
    untilMs: Date.parse("2027-06-30T22:00:00Z"),
  });
  const text = "at 03:00, Europe/Berlin, until 2027-06-30T22:00:00Z";
  expect(scheduleWords(bound, text, wordsIn("en", "Asia/Tokyo"))).toBe(
    "at 03:00, Europe/Berlin, until Thu 1 Jul 2027 00:00",
  );
  expect(scheduleWords(bound, text, zh)).toBe("每天 03:00 · Europe/Berlin，至 2027年7月1日周四 00:00 止");
});
