import { expect, test } from "vitest";
import { parseCron } from "../../../scheduler/src/cron-parse.ts";
import { cronInChinese, scheduleWords } from "./schedule-words.ts";

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
])("%s is %s", (expression, said) => {
  expect(cronInChinese(parseCron(expression).fields)).toBe(said);
});

test("what has no short sentence is shown as it was written", () => {
  const schedule = {
    type: "cron",
    expression: "0 0 * * 1#2",
    zone: "Asia/Shanghai",
    gap: "shift",
    overlap: "first",
  } as const;
  expect(scheduleWords(schedule, "…", "zh")).toBe("0 0 * * 1#2 · Asia/Shanghai");
  expect(scheduleWords({ type: "every", everyMs: 5_000, mode: "rate" }, "every 5 seconds", "zh")).toBe("每 5 秒一次");
  expect(scheduleWords({ type: "manual" }, "manual", "en")).toBe("manual");
});
