import { describe, expect, it } from "vitest";
import { readable, tasksOf, told, utc } from "../../../test/support/imports.ts";
import { compareTask } from "../compare/compare.ts";
import { importApscheduler } from "./apscheduler.ts";
import { importCelery } from "./celery-beat.ts";

const same = (found: ReturnType<typeof importCelery>) => {
  readable(found);
  expect(found.tasks.map((task) => compareTask(task, utc.nowMs, 20).outcome)).toEqual(found.tasks.map(() => "same"));
};

describe("Celery beat", () => {
  const beat = (schedule: unknown, rest = {}) =>
    importCelery([{ path: "x.json", text: JSON.stringify({ a: { task: "t", schedule, ...rest } }) }], utc);

  it.each<[unknown, unknown]>([
    [30, { every: "30s" }],
    ["0:01:30", { every: "1m30s" }],
    ["1 day, 0:00:00", { every: "1d" }],
    ["<freq: 30.00 seconds>", { every: "30s" }],
    [
      { minute: "0", hour: "*/3" },
      { cron: "0 */3 * * *", zone: "UTC" },
    ],
    [
      { minute: 0, hour: 7, day_of_week: "mon,wed" },
      { cron: "0 7 * * mon,wed", zone: "UTC" },
    ],
    ["<crontab: 30 7 * * 1 (m/h/dM/MY/d)>", { cron: "30 7 * * 1", zone: "UTC" }],
    ["<crontab: 30 7 1 * * (m/h/d/dM/MY)>", { cron: "30 7 * * 1", zone: "UTC" }],
    ["<crontab: 0 2 1-7 * sat (m/h/dM/MY/d)>", { cron: "0 2 * * sat#1", zone: "UTC" }],
    ["<crontab: 0 2 */2 * 1-5 (m/h/dM/MY/d)>", { cron: "0 2 */2 * 1-5", zone: "UTC" }],
  ])("%j", (schedule, expected) => {
    const found = beat(schedule);
    same(found);
    expect(tasksOf(found)).toEqual({ a: { schedule: expected } });
  });

  it.each<[unknown, RegExp]>([
    ["<solar: sunset at latitude 1, longitude: 2>", /cannot be carried over/],
    ["<crontab: 0 2 13 * 5 (m/h/dM/MY/d)>", /days that match both day fields/],
  ])("%j is a problem, not a guess", (schedule, message) =>
    expect(told(beat(schedule), "problem")).toEqual([expect.stringMatching(message)]),
  );

  it("reports options, and an incomplete fixture", () => {
    const found = beat(30, { options: { queue: "slow", expires: 15 } });
    expect(tasksOf(found)).toEqual({ a: { group: "slow", schedule: { every: "30s" } } });
    expect(told(found, "lost")).toEqual(["a: its option expires: 15"]);
    const part = [{ model: "django_celery_beat.periodictask", pk: 1, fields: { name: "a", crontab: 9 } }];
    expect(told(importCelery([{ path: "x.json", text: JSON.stringify(part) }], utc), "problem")).toEqual([
      "a: its crontab 9 is not in these files",
    ]);
    expect(told(importCelery([{ path: "x.json", text: "[]" }], utc), "problem")).toEqual([
      ": x.json has no periodic tasks",
    ]);
  });
});

describe("APScheduler", () => {
  const entry = (row: object) =>
    importApscheduler([{ path: "x.json", text: JSON.stringify([{ id: "a", func: "f", ...row }]) }], {
      ...utc,
      zone: "Asia/Tokyo",
    });
  const cron = (text: string) => ({ cron: text, zone: "Asia/Tokyo" });

  it.each<[object, unknown]>([
    [{ hour: "5" }, cron("0 0 5 * * *")],
    [{ minute: "*/10" }, cron("0 */10 * * * *")],
    [{ day: "1" }, cron("0 0 0 1 * *")],
    [{ year: "2027-2028", month: "6" }, cron("0 0 0 1 6 * 2027-2028")],
    [{ day_of_week: "mon-fri", hour: "9" }, cron("0 0 9 * * MON,TUE,WED,THU,FRI")],
    [{ day_of_week: "6", hour: "9" }, cron("0 0 9 * * SUN")],
    [{ day_of_week: "*/2", hour: "9" }, cron("0 0 9 * * MON,WED,FRI,SUN")],
    [{ day: "last", hour: "9" }, cron("0 0 9 L * *")],
  ])("%j", (row, expected) => {
    const found = entry({ trigger: "cron", ...row });
    same(found);
    expect(tasksOf(found).a).toMatchObject({ schedule: expected });
  });

  it("supports the last Friday and the second Monday, but not a week of the year", () => {
    expect(tasksOf(entry({ trigger: "cron", day: "last fri" })).a).toMatchObject({ schedule: cron("0 0 0 * * FRIL") });
    expect(tasksOf(entry({ trigger: "cron", day: "2nd mon" })).a).toMatchObject({ schedule: cron("0 0 0 * * MON#2") });
    expect(told(entry({ trigger: "cron", week: "3" }), "problem")).toEqual([
      expect.stringMatching(/^a: its trigger cron/),
    ]);
    expect(told(entry({ trigger: "and" }), "problem")).toEqual([expect.stringMatching(/^a: its trigger and/)]);
  });

  it("imports paused or ended entries without their schedule", () => {
    for (const row of [
      { trigger: "interval", hours: 1, next_run_time: null },
      { trigger: "interval", hours: 1, end_date: "2020-01-01T00:00:00Z" },
      { trigger: "date", run_date: "2020-01-01T00:00:00Z" },
    ]) {
      const found = entry(row);
      same(found);
      expect(tasksOf(found).a).not.toHaveProperty("schedule");
    }
  });
});
