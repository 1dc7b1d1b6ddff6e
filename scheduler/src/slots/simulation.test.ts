import { describe, expect, it } from "vitest";
import { cron, every } from "../schedule/schedule.ts";
import { defineTask, type TaskOptions } from "../task/task.ts";
import { simulate } from "./simulation.ts";

const task = (name: string, options: TaskOptions) => ({ definition: defineTask(name, options) });
const at = (text: string) => Date.parse(text);
const zone = "America/New_York";

describe("a simulation", () => {
  it("lists the fires in order, counts all of them, and knows the skipped slots", () => {
    const tasks = [
      task("a", { schedule: every("6h") }),
      task("b", { schedule: every("1h"), blackout: [{ from: "02:00", to: "23:00" }] }),
    ];
    const { fires, total, skipped } = simulate(tasks, at("2027-01-01T00:00:00Z"), at("2027-01-02T00:00:00Z"), 4);
    expect(
      fires.map(({ atMs, task, skipped, previousMs }) => [
        new Date(atMs).getUTCHours(),
        task,
        skipped,
        previousMs !== null,
      ]),
    ).toEqual([
      [0, "a", false, false],
      [0, "b", false, false],
      [1, "b", false, true],
      [2, "b", true, true],
    ]);
    expect(fires[3]?.rule).toContain("blackout");
    expect([total, skipped]).toEqual([28, 21]);
  });

  it("leaves out slots whose nominal times are already recorded", () => {
    const hours = [1, 2, 3].map((hour) => hour * 3_600_000);
    const ran = { ...task("a", { schedule: every("1h") }), accountedMs: [hours[1] as number] };
    expect(simulate([ran], 1, 4 * 3_600_000, 9).fires.map(({ atMs }) => atMs)).toEqual([hours[0], hours[2]]);
  });

  it("includes its first instant and excludes its last", () => {
    const hours = simulate([task("a", { schedule: every("1h") })], 3_600_000, 7_200_000, 9).fires;
    expect(hours.map(({ atMs }) => atMs)).toEqual([3_600_000]);
  });

  it("reports the minutes in which several tasks fire, the fullest first", () => {
    const tasks = [
      task("every-second", { schedule: every("1s") }),
      task("noon", { schedule: cron("0 12 * * *") }),
      task("lunch", { schedule: cron("0,30 12 * * *") }),
    ];
    const { collisions } = simulate(tasks, at("2027-01-01T11:59:00Z"), at("2027-01-01T13:00:00Z"), 0);
    expect(
      collisions.map(({ minuteMs, fires, tasks }) => [new Date(minuteMs).toISOString().slice(11, 16), fires, tasks]),
    ).toEqual([
      ["12:00", 62, ["every-second", "noon", "lunch"]],
      ["12:30", 61, ["every-second", "lunch"]],
    ]);
  });

  it("reports local times skipped by a change of clocks, for tasks that skip them", () => {
    const tasks = [
      task("skips", { schedule: cron("30 2 * * *", { zone, gap: "skip" }) }),
      task("shifts", { schedule: cron("30 2 * * *", { zone, gap: "shift" }) }),
      task("often", { schedule: cron("*/10 * * * *", { zone }) }),
      task("utc", { schedule: cron("30 2 * * *", { gap: "skip" }) }),
    ];
    const { lost } = simulate(tasks, at("2027-03-01T00:00:00Z"), at("2027-12-01T00:00:00Z"), 0);
    const change = at("2027-03-14T07:00:00Z");
    expect(lost).toEqual([
      { atMs: change, task: "skips", local: "02:30", count: 1 },
      { atMs: change, task: "often", local: "02:00", count: 6 },
    ]);
    expect(simulate(tasks, at("2027-03-15T00:00:00Z"), at("2027-10-01T00:00:00Z"), 0).lost).toEqual([]);
  });

  it("shows for a task that is paused until a time what fires from then on", () => {
    const [fromMs, toMs] = [at("2027-03-01T00:00:00Z"), at("2027-03-02T00:00:00Z")];
    const hourly = { ...task("hourly", { schedule: every("1h") }), paused: { untilMs: fromMs + 22.5 * 3_600_000 } };
    expect(simulate([hourly], fromMs, toMs, 10).fires.map(({ atMs }) => (atMs - fromMs) / 3_600_000)).toEqual([23]);
  });

  it("is refused if there are too many slots to examine", () => {
    const tasks = [task("fast", { schedule: every("100ms") })];
    expect(() => simulate(tasks, 0, 86_400_000 * 2, 0)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });
});
