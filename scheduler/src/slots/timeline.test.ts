import { describe, expect, test } from "vitest";
import { cron, every, manual } from "../schedule/schedule.ts";
import { defineTask, type TaskOptions } from "../task/task.ts";
import type { TaskRecord } from "../task/task-record.ts";
import type { AlikeTasks } from "./alike-tasks.ts";
import { shifted, suggestSpread } from "./spread.ts";
import { firingIn, foretell, type Timeline } from "./timeline.ts";

const fromMs = Date.parse("2026-10-24T00:00:00Z");
const dayMinutes = 1_440;
const at = (hour: number, minute: number, day = 0) => day * dayMinutes + hour * 60 + minute;
let breaths = 0;
const breathe = async () => {
  breaths++;
};
const taskOf = (name: string, options: TaskOptions, more: Partial<TaskRecord> = {}): TaskRecord => ({
  taskId: 7,
  name,
  version: 3,
  definition: defineTask(name, options),
  groupId: 1,
  paused: null,
  changedMs: 0,
  nextSlotMs: null,
  ...more,
});
const pausedUntil = (untilMs: number | null) => ({ atMs: 0, by: "ann", why: "", untilMs });
const apart = (tasks: TaskRecord[]): AlikeTasks[] => tasks.map((task) => ({ task, count: 1, names: task.name }));
const lineOf = (tasks: TaskRecord[], days = 3) => foretell(apart(tasks), fromMs, days * dayMinutes, breathe);
const firing = (line: Timeline, from: number, to: number) => firingIn(line, { from, to, most: 10 }).firing;

describe("a timeline", () => {
  test("shows for a task that is paused until a time what fires from then on", async () => {
    const paused = pausedUntil(fromMs + (1_440 + 3 * 60) * 60_000 + 30_000);
    const line = await lineOf([
      taskOf("daily", { schedule: cron("0 3 * * *") }),
      taskOf("late", { schedule: cron("0 3 * * *") }, { paused }),
      taskOf("beat", { schedule: every("20s") }, { paused }),
      taskOf("minutely", { schedule: every("1m") }, { paused }),
      taskOf("long", { schedule: cron("0 3 * * *") }, { paused: pausedUntil(fromMs + 3 * 86_400_000) }),
    ]);
    expect(line.counted).toEqual({ foretold: 4, paused: 1, unforeseen: 0, left: 0 });
    expect([0, 1, 2].map((day) => line.fires[at(3, 0, day)])).toEqual([1, 1 + 1, 2 + 3 + 1]);
    expect([at(2, 59, 1), at(3, 0, 1), at(3, 1, 1)].map((minute) => line.tasks[minute])).toEqual([0, 2, 2]);
    const told = firing(line, at(2, 0, 1), at(3, 2, 1)).map(({ name, fires, firstMs }) => [
      name,
      fires,
      (firstMs - fromMs) / 60_000 - 1_440,
    ]);
    expect(told).toEqual([
      ["daily", 1, 180],
      ["beat", 4, 180],
      ["minutely", 1, 181],
    ]);
    expect(firing(line, at(2, 0), at(3, 30)).map(({ name }) => name)).toEqual(["daily"]);
  });

  test("counts the runs due in each minute, and of how many tasks they are", async () => {
    const line = await lineOf([
      taskOf("a", { schedule: cron("0 3 * * *") }),
      taskOf("b", { schedule: cron("0 3 * * *") }),
      taskOf("c", { schedule: cron("0,30 0 3 * * *") }),
      taskOf("beat", { schedule: every("7s") }),
      taskOf("hand", { schedule: manual }),
      taskOf("chain", { schedule: every("1h", { mode: "delay" }) }),
      taskOf("off", { schedule: cron("0 3 * * *") }, { paused: pausedUntil(null) }),
    ]);
    expect(line.counted).toEqual({ foretold: 4, paused: 1, unforeseen: 2, left: 0 });
    for (const day of [0, 1, 2]) expect(line.tasks[at(3, 0, day)]).toBe(4);
    expect(line.tasks[at(3, 1)]).toBe(1);
    // The expected number of fires is two of c, one each of a and b, and one every 7 s since the epoch.
    const beats = Array.from({ length: 60 }, (_, s) => (fromMs / 1_000 + at(3, 0) * 60 + s) % 7).filter((s) => s === 0);
    expect(line.fires[at(3, 0)]).toBe(4 + beats.length);
    expect(line.fires.reduce((a, b) => a + b)).toBe(
      3 * 4 + Math.ceil((3 * 86_400 - ((7 - ((fromMs / 1_000) % 7)) % 7)) / 7),
    );
    expect(firing(line, at(3, 0), at(3, 1)).map(({ name, fires }) => [name, fires])).toEqual([
      ...[
        ["a", 1],
        ["b", 1],
        ["c", 2],
        ["beat", beats.length],
      ].sort(([, a], [, b]) => Number(a) - Number(b)),
    ]);
    expect(firing(line, at(4, 0), at(4, 1)).map(({ name }) => name)).toEqual(["beat"]);
  });

  test("leaves out slots that are already recorded, even if another task is otherwise identical", async () => {
    const schedule = cron("0 3 * * *");
    const ran = taskOf("ran", { schedule }, { accountedMs: [fromMs + 3 * 3_600_000] });
    const line = await lineOf([taskOf("a", { schedule }), ran]);
    expect([0, 1, 2].map((day) => line.tasks[at(3, 0, day)])).toEqual([1, 2, 2]);
    expect(firing(line, at(3, 0), at(3, 1)).map(({ name }) => name)).toEqual(["a"]);
  });

  test("lists the first of many identical tasks by slot, fires and name, and counts all of them", async () => {
    const three = taskOf("three", { schedule: cron("0 3 * * *") });
    const line = await foretell(
      [
        { task: three, count: 4, names: "d b e a" },
        { task: taskOf("c", { schedule: cron("0 3 * * *", { zone: "Africa/Lome" }) }), count: 1, names: "c" },
        { task: taskOf("early", { schedule: cron("59 2 * * *") }), count: 2, names: "z y" },
      ],
      fromMs,
      dayMinutes,
      breathe,
    );
    const of = (most: number) => {
      const { firing, count } = firingIn(line, { from: at(2, 0), to: at(4, 0), most });
      return [firing.map(({ name }) => name).join(""), count];
    };
    for (const most of [1, 2, 3, 4, 5, 6, 7, 8]) expect(of(most)).toEqual(["yzabcde".slice(0, most), 7]);
    expect([line.fires[at(3, 0)], line.tasks[at(3, 0)], line.counted.foretold]).toEqual([5, 5, 7]);
  });

  test("reports changes of clocks, and applies them", async () => {
    const line = await lineOf([
      taskOf("night", { schedule: cron("30 2 * * *", { zone: "Europe/Berlin", overlap: "both" }) }),
    ]);
    expect(line.clockChanges).toEqual([
      { atMs: Date.parse("2026-10-25T01:00:00Z"), zone: "Europe/Berlin", byMinutes: -60, tasks: 1 },
    ]);
    const minutes = line.fires.flatMap((fires, minute) => (fires > 0 ? minute : []));
    expect(minutes).toEqual([at(0, 30), at(0, 30, 1), at(1, 30, 1), at(1, 30, 2)]);
  });

  test("reports no change of clocks for a task without forecast", async () => {
    const options = { schedule: cron("* * * * * *", { zone: "Africa/Cairo" }) };
    const beginMs = Date.parse("2041-12-25T00:00:00Z");
    const { clockChanges, counted } = await foretell(
      apart([taskOf("left", options)]),
      beginMs,
      14 * dayMinutes,
      breathe,
    );
    expect([clockChanges, counted.left]).toEqual([[], 1]);
  });

  test("leaves out slots skipped by calendar or blackout, and counts jitter at the due time", async () => {
    const weekdays = { name: "bank", version: 1, zone: "UTC", weekend: [0, 6], holidays: [] };
    const line = await lineOf([
      taskOf("bank", { schedule: cron("0 9 * * *"), calendar: { name: "bank" } }, { calendar: weekdays }),
      taskOf("late", { schedule: cron("0 12 * * *", { jitter: "30m" }) }),
    ]);
    // The timeline begins on Saturday, 24 October 2026, so only the third day is a working day.
    expect([0, 1, 2].map((day) => line.fires[at(9, 0, day)])).toEqual([0, 0, 1]);
    const late = line.fires.slice(at(12, 0), at(12, 31));
    expect(late.reduce((a, b) => a + b)).toBe(1);
    expect(line.fires.slice(at(12, 0, 1), at(12, 31, 1)).indexOf(1)).not.toBe(late.indexOf(1));
  });

  test("leaves out tasks that this process cannot read, and forecasts the others", async () => {
    const newer = taskOf("newer", { schedule: cron("0 3 * * *", { zone: "Asia/Shanghai" }) });
    Object.assign(newer.definition.schedule, { zone: "Mars/Olympus" });
    const line = await lineOf([newer, taskOf("a", { schedule: cron("0 3 * * *") })]);
    expect(line.counted).toEqual({ foretold: 1, paused: 0, unforeseen: 1, left: 0 });
  });

  test("evaluates identical schedules once, yields to other work, and leaves out tasks that cost too much", async () => {
    breaths = 0;
    const minutely = { schedule: cron("* * * * *") };
    const names = Array.from({ length: 10_000 }, (_, n) => `m${n}`);
    const many = { task: taskOf("m0", minutely), count: names.length, names: names.join(" ") };
    const of14Days = (all: AlikeTasks[]) => foretell(all, fromMs, 14 * dayMinutes, breathe);
    const line = await of14Days([many]);
    expect([line.counted.left, line.fires[5], breaths > 10 && breaths < 100]).toEqual([0, 10_000, true]);
    const seconds = ["0", "1", "2"].map((second) => taskOf(`s${second}`, { schedule: cron(`${second}-59 * * * * *`) }));
    const { left, foretold } = (await of14Days([many, ...apart(seconds)])).counted;
    expect([left, foretold]).toEqual([3, 10_000]);
  });
});

describe("a spread of tasks over an hour", () => {
  test("moves coinciding tasks later within their hour, and predicts the new peak", async () => {
    const tasks = Array.from({ length: 12 }, (_, n) => taskOf(`t${n}`, { schedule: cron("0 3 * * *") }));
    const line = await lineOf([...tasks, taskOf("fixed", { schedule: every("1h") })]);
    const { peak, fuller, moves, jitter } = suggestSpread(line, { within: 6, most: 20 });
    // Thirteen runs are due in one minute, and they can be spread over seven minutes.
    expect(peak).toEqual({ before: 13, after: 2 });
    expect(fuller).toBe(3);
    expect(new Set(moves.map(({ task }) => task)).size).toBe(moves.length);
    for (const { minutes, becomes } of moves) expect(becomes).toBe(`${minutes} 3 * * *`);
    expect(Math.max(...moves.map(({ minutes }) => minutes))).toBeLessThanOrEqual(6);
    // The timeline after the moves must have the predicted figures.
    const moved = tasks.map((task) => {
      const move = moves.find((one) => one.task === task.name);
      return move ? taskOf(task.name, { schedule: cron(move.becomes) }) : task;
    });
    const after = await lineOf([...moved, taskOf("fixed", { schedule: every("1h") })]);
    expect(Math.max(...after.fires)).toBe(peak.after);
    expect(jitter).toEqual([
      { minutes: 2, peak: 7 },
      { minutes: 5, peak: 3.4 },
      { minutes: 10, peak: 2.2 },
      { minutes: 15, peak: 1.8 },
    ]);
  });

  test("is the same for grouped tasks as for single ones", async () => {
    const names = Array.from({ length: 30 }, (_, n) => `t${String((n * 7) % 30).padStart(2, "0")}`);
    const tasks = names.toSorted().map((name) => taskOf(name, { schedule: cron("0 3 * * *") }));
    const alone = suggestSpread(await lineOf(tasks), { within: 9, most: 20 });
    const gathered = [{ task: tasks[0] as TaskRecord, count: 30, names: names.join(" ") }];
    const line = await foretell(gathered, fromMs, 3 * dayMinutes, breathe);
    expect(suggestSpread(line, { within: 9, most: 20 })).toEqual(alone);
    expect(alone.moves.map(({ task }) => task)).toEqual(names.toSorted().slice(0, 20));
  });

  test("moves neither tasks that fire all the time nor tasks whose move improves nothing", async () => {
    const busy = ["a", "b"].map((name) => taskOf(name, { schedule: cron("*/5 * * * *") }));
    expect(suggestSpread(await lineOf(busy), { within: 10, most: 20 }).moves).toEqual([]);
    const alone = await lineOf([taskOf("one", { schedule: cron("0 3 * * *") })]);
    expect(suggestSpread(alone, { within: 10, most: 20 })).toMatchObject({ moves: [], peak: { before: 1, after: 1 } });
  });

  test.each([
    ["0 3 * * *", 5, "5 3 * * *"],
    ["0,30 8 * * 1-5", 5, "5,35 8 * * 1-5"],
    ["*/15 * * * *", 5, "5-59/15 * * * *"],
    ["10-20/5 * * * *", 3, "13-23/5 * * * *"],
    ["15 0 3 * * *", 4, "15 4 3 * * *"],
    ["*/15 * * * *", 20, null],
    ["58 3 * * *", 5, null],
    ["* 3 * * *", 1, null],
    ["@daily", 1, null],
  ])("%s moved by %i minutes becomes %s", (expression, minutes, becomes) => {
    expect(shifted(expression, minutes)).toBe(becomes);
  });
});
