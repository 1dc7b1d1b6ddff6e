import { cron, every, manual } from "carillon/schedule";
import { expect, test } from "vitest";
import { blockedDays, dayOf, daysOfYear, dayText, kindsOf, todayIn, weekdayOf } from "./days.ts";

const berlin = { zone: "Europe/Berlin", weekend: [0, 6], holidays: ["2026-12-25", "2026-12-26"] };
const rule = { name: "de", on: "working-days", otherwise: "skip" } as const;
const december = [dayOf(2026, 11, 1), dayOf(2026, 11, 31)] as const;
const told = (...given: Parameters<typeof blockedDays>) =>
  blockedDays(...given).map(({ day, to, several }) => [dayText(day), to === null ? null : dayText(to), several]);

test("a year has 365 or 366 days, and each is a working day, a weekend day or a holiday", () => {
  expect([daysOfYear(2026).length, daysOfYear(2028).length]).toEqual([365, 366]);
  expect(dayText(daysOfYear(2026)[0] as number)).toBe("2026-01-01");
  const kind = kindsOf(berlin);
  expect([24, 25, 26, 27].map((date) => kind(dayOf(2026, 11, date)))).toEqual([
    "work",
    "holiday",
    "holiday",
    "weekend",
  ]);
  expect(weekdayOf(dayOf(2026, 11, 25))).toBe(5);
  expect(dayText(todayIn("Asia/Tokyo", Date.parse("2026-12-31T16:00:00Z")))).toBe("2027-01-01");
});

test("days that the calendar blocks are computed in the calendar's zone, whatever the task's zone is", () => {
  const weekdays = cron("0 9 * * 1-5", { zone: "Europe/Berlin" });
  expect(told({ schedule: weekdays, calendar: rule }, berlin, ...december)).toEqual([["2026-12-25", null, false]]);
  // 23:30 in New York is the next day in Berlin.
  const late = cron("30 23 24 12 *", { zone: "America/New_York" });
  expect(told({ schedule: late, calendar: rule }, berlin, ...december)).toEqual([["2026-12-25", null, false]]);
  const often = { schedule: every("10m"), calendar: { ...rule, otherwise: "next" } } as const;
  expect(told(often, berlin, dayOf(2026, 11, 24), dayOf(2026, 11, 28))).toEqual([
    ["2026-12-25", "2026-12-28", true],
    ["2026-12-26", "2026-12-28", true],
    ["2026-12-27", "2026-12-28", true],
  ]);
  const before = { schedule: weekdays, calendar: { ...rule, otherwise: "previous" } } as const;
  expect(told(before, berlin, ...december)).toEqual([["2026-12-25", "2026-12-24", false]]);
});

test("a task without a calendar or without slots has no blocked days", () => {
  expect(blockedDays({ schedule: every("1h") }, berlin, ...december)).toEqual([]);
  expect(blockedDays({ schedule: manual, calendar: rule }, berlin, ...december)).toEqual([]);
});
