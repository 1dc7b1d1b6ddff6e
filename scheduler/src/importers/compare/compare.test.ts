import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sample, utc } from "../../../test/support/imports.ts";
import { nextSlots } from "../../schedule/schedule.ts";
import { readWritten } from "../../task/written.ts";
import { importBullmq } from "../bullmq.ts";
import { eitherDay } from "../either-day.ts";
import type { Findings, ImportedTask, ImportOptions, SourceFile } from "../findings.ts";
import { importKubernetes } from "../kubernetes.ts";
import { importPgBoss } from "../pg-boss.ts";
import { importQuartz } from "../quartz.ts";
import { quartzCron } from "../quartz-cron.ts";
import { cronOfCalendar } from "../systemd/on-calendar.ts";
import { importSystemd } from "../systemd/timers.ts";
import { fromXxl } from "../xxl-job.ts";
import { compareTask } from "./compare.ts";
import { readCron } from "./cron-reading.ts";
import type { CronDialect, SourceTimes } from "./source-times.ts";
import { readOnCalendar } from "./systemd-reading.ts";
import { timesOf } from "./walk.ts";

const { nowMs } = utc;
const compared = (task: ImportedTask) => compareTask(task, nowMs, 20);
const taskOf = (schedule: unknown, times: SourceTimes, rest = {}): ImportedTask => ({
  name: "a",
  comment: "",
  written: { schedule } as ImportedTask["written"],
  told: { times, suspended: false, fromMs: undefined, untilMs: undefined, ...rest },
});
const cronTask = (cron: string, dialect: CronDialect, text: string, zone = "Europe/Berlin") =>
  taskOf({ cron, zone }, { dialect, text, zone });

describe("the samples of every importer fire as their sources do", () => {
  type Importer = (files: readonly SourceFile[], options: ImportOptions) => Findings;
  it.each<[string, Importer]>([
    ["xxl_job_info.json", fromXxl],
    ["quartz_data.xml", importQuartz],
    ["cronjobs.yaml", importKubernetes],
    ["bullmq-schedulers.json", importBullmq],
    ["pg-boss-schedules.json", importPgBoss],
  ])("%s", (path, from) => {
    const { tasks } = from([sample(path)], { ...utc, zone: "America/New_York" });
    expect(tasks.length).toBeGreaterThan(2);
    expect(tasks.map((task) => [task.name, compared(task).outcome])).toEqual(tasks.map(({ name }) => [name, "same"]));
  });
});

describe("a wrong import is a difference", () => {
  const at = Date.UTC(2030, 0, 1);
  const day = { dialect: "interval", everyMs: 86_400_000, anchorMs: 0 } as const;
  const nine = { dialect: "vixie", text: "0 9 * * *", zone: "Europe/Berlin" } as const;
  it.each<[string, ImportedTask]>([
    ["Quartz's weekdays taken for cron's", cronTask("0 15 10 ? * 2-6", "quartz", "0 15 10 ? * 2-6")],
    ["a step in Quartz's weekdays", cronTask("0 0 0 ? * 2/2", "quartz", "0 0 0 ? * 2/2")],
    ["EventBridge's weekdays taken for cron's", cronTask("0 0 9 ? * 2", "eventbridge", "0 9 ? * 2 *")],
    ["a starred day field that means either day", cronTask("0 0 */2 * 1", "kubernetes", "0 0 */2 * 1")],
    ["days that must match both fields", cronTask("0 0 13 * 5", "celery", "0 0 13 * 5")],
    ["APScheduler's Monday, which is 0", cronTask("0 0 9 * * 0", "apscheduler", "0 0 9 * * 0 *")],
    ["another zone", taskOf({ cron: "0 9 * * *", zone: "UTC" }, nine)],
    ["a task that stood still", taskOf({ cron: "0 9 * * *", zone: "Europe/Berlin" }, nine, { suspended: true })],
    ["a task that had ended", taskOf({ cron: "0 9 * * *", zone: "Europe/Berlin" }, nine, { untilMs: nowMs })],
    ["a beginning that was left out", taskOf({ cron: "0 9 * * *", zone: "Europe/Berlin" }, nine, { fromMs: at })],
    ["a schedule that was lost", taskOf("manual", nine)],
    ["an interval's unit", taskOf({ every: "1h" }, { dialect: "interval", everyMs: 60_000 })],
    ["an interval's phase", taskOf({ every: "1d", anchor: "2026-01-01T01:00:00Z" }, day)],
    ["a delay taken for a rate", taskOf({ every: "1h" }, { dialect: "delay", everyMs: 3_600_000 })],
    ["one time in another zone", taskOf({ at: "2030-01-01T01:00:00Z" }, { dialect: "once", atMs: at })],
  ])("%s", (_, task) => expect(compared(task)).toMatchObject({ outcome: "differs" }));

  it("is shown with both lists of times side by side", () => {
    const { times, zone, said } = compared(cronTask("0 9 * * 1-5", "vixie", "0 9 * * 2-6", "UTC"));
    expect([zone, said]).toEqual(["UTC", "0 9 * * 2-6"]);
    expect(times.slice(0, 4)).toEqual([
      { source: Date.UTC(2026, 10, 26, 9), task: Date.UTC(2026, 10, 26, 9), state: "same" },
      { source: Date.UTC(2026, 10, 27, 9), task: Date.UTC(2026, 10, 27, 9), state: "same" },
      { source: Date.UTC(2026, 10, 28, 9), task: null, state: "differs" },
      { source: null, task: Date.UTC(2026, 10, 30, 9), state: "differs" },
    ]);
  });

  it("does not include times beside a change of clocks, which are shown but not judged", () => {
    const skipped = taskOf(
      { cron: "30 2 * * SUN", zone: "Europe/Berlin", gap: "skip" },
      { dialect: "vixie", text: "30 2 * * 0", zone: "Europe/Berlin" },
    );
    const shifted = cronTask("30 2 * * SUN", "vixie", "30 2 * * 0");
    for (const task of [skipped, shifted]) expect(compared(task).outcome).toBe("same");
    expect(compared(shifted).times.find(({ state }) => state === "clock change")).toEqual({
      source: null,
      task: Date.UTC(2027, 2, 28, 1, 30),
      state: "clock change",
    });
  });

  it("is not reported if there is nothing to compare with", () => {
    expect(compared({ ...cronTask("0 9 * * *", "vixie", "H 9 * * *") })).toMatchObject({ outcome: "not compared" });
    const { told: _, ...bare } = cronTask("0 9 * * *", "vixie", "");
    expect(compared(bare)).toMatchObject({ outcome: "not compared", times: [] });
  });
});

/** A random field in one dialect: a star, a step, a number, a list, or a range. */
const field = (low: number, high: number) =>
  fc.oneof(
    fc.constant("*"),
    fc.integer({ min: 2, max: Math.min(9, high - low) }).map((step) => `*/${step}`),
    fc.integer({ min: low, max: high }).map(String),
    fc.uniqueArray(fc.integer({ min: low, max: high }), { minLength: 2, maxLength: 3 }).map((list) => list.join(",")),
    fc
      .tuple(fc.integer({ min: low, max: high - 1 }), fc.nat(5))
      .map(([from, by]) => `${from}-${Math.min(high, from + by)}`),
  );
const fields = (weekdays: [number, number]) =>
  fc.tuple(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(...weekdays));

describe("both readings agree on any expression, and disagree without the importer's conversion", () => {
  const property = (
    dialect: CronDialect,
    weekdays: [number, number],
    textOf: (f: string[]) => string,
    change: (text: string) => string,
  ) => {
    let unchanged = 0;
    fc.assert(
      fc.property(fields(weekdays), (parts) => {
        const text = textOf(parts);
        const { outcome, times } = compared(cronTask(change(text), dialect, text, "UTC"));
        expect([text, outcome, times.length > 0]).toEqual([text, "same", true]);
        if (compared(cronTask(text, dialect, text, "UTC")).outcome === "differs") unchanged++;
      }),
      { numRuns: 150, seed: 31 },
    );
    return unchanged;
  };
  it("Kubernetes, where a star with a step counts as a restriction", () => {
    expect(property("kubernetes", [0, 6], (f) => f.join(" "), eitherDay)).toBeGreaterThan(0);
  });
  it("Vixie, whose rule is the same as Carillon's", () => {
    expect(
      property(
        "vixie",
        [0, 6],
        (f) => f.join(" "),
        (text) => text,
      ),
    ).toBe(0);
  });
  it("Quartz, whose weekdays are 1 to 7", () => {
    const textOf = ([m, h, , mo, w]: string[]) => `0 ${m} ${h} ? ${mo} ${w}`;
    expect(property("quartz", [1, 7], textOf, quartzCron)).toBeGreaterThan(20);
  });
});

describe("special days", () => {
  const first = (dialect: CronDialect, text: string) =>
    timesOf(readCron(dialect, text), "UTC", nowMs, 3).map((ms) => new Date(ms).toISOString().slice(0, 10));
  it.each<[CronDialect, string, string[]]>([
    ["quartz", "0 0 0 L * ?", ["2026-11-30", "2026-12-31", "2027-01-31"]],
    ["quartz", "0 0 0 L-3 * ?", ["2026-11-27", "2026-12-28", "2027-01-28"]],
    ["quartz", "0 0 0 LW * ?", ["2026-11-30", "2026-12-31", "2027-01-29"]],
    ["quartz", "0 0 0 15W * ?", ["2026-12-15", "2027-01-15", "2027-02-15"]],
    ["quartz", "0 0 0 ? * L", ["2026-11-28", "2026-12-05", "2026-12-12"]],
    ["quartz", "0 0 0 ? * 6L", ["2026-11-27", "2026-12-25", "2027-01-29"]],
    ["quartz", "0 0 0 ? * 6#3", ["2026-12-18", "2027-01-15", "2027-02-19"]],
    ["fugit", "0 0 * * mon#-1", ["2026-11-30", "2026-12-28", "2027-01-25"]],
    ["apscheduler", "0 0 0 * * 0 *", ["2026-11-30", "2026-12-07", "2026-12-14"]],
    ["vixie", "0 0 * * 5-7", ["2026-11-27", "2026-11-28", "2026-11-29"]],
  ])("%s: %s", (dialect, text, days) => expect(first(dialect, text)).toEqual(days));
});

interface Recorded {
  text: string;
  from: string;
  times: string[];
}
/** Recorded output of systemd-analyze; the file contains the command. */
const oracle = JSON.parse(
  readFileSync(new URL("../../../test/support/systemd-calendar.json", import.meta.url), "utf8"),
) as Record<"plain" | "changes", Recorded[]>;

describe("OnCalendar", () => {
  const timers = (text: string) =>
    importSystemd([{ path: "a.timer", text: `[Timer]\nOnCalendar=${text}\n` }], utc).tasks;
  const slots = (text: string, from: string) =>
    nextSlots(readWritten("a", timers(text)[0]?.written).schedule, Date.parse(from), 5);

  it.each(oracle.plain)("$text means the same as in systemd-analyze, in both readings", ({ text, from, times }) => {
    const expected = times.map((time) => Date.parse(time));
    const { reading, zone = "UTC" } = readOnCalendar(text);
    expect(timesOf(reading, zone, Date.parse(from), 5)).toEqual(expected);
    expect(slots(text, from)).toEqual(expected);
    expect(timers(text).map(compared)).toMatchObject([{ outcome: "same", said: text }]);
  });

  it.each(oracle.changes)(
    "$text means the same as in systemd-analyze at a change of clocks, from $from",
    ({ text, from, times }) => {
      expect(slots(text, from)).toEqual(times.map((time) => Date.parse(time)));
    },
  );

  it.each(["Mon *-*-13 00:00", "*-*-*/2", "tomorrow", "Mon..", "10:00 11:00", "*-*-* 10:00:00.5"])(
    "%s is a problem, not a guess",
    (text) => expect(cronOfCalendar(text)).toBeUndefined(),
  );
});
