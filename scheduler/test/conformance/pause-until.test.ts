import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { every } from "../../src/index.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import { type TestTower, testTower } from "../../src/testing/testing.ts";
import { everyPostgres, postgres } from "../support/servers.ts";
import { change, openStage, type Stage } from "../support/store-stage.ts";

describe.each(everyPostgres())("a pause with an end, on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session();
  });
  afterAll(() => stage.close());

  const s = 1_000;
  const pausedTask = async (name: string, untilMs: number | null, options: TaskOptions = {}) => {
    const fromMs = stage.nowMs;
    const schedule = every("10s", { anchor: fromMs });
    const task = await stage.task(name, { group: name, grace: 0, schedule, ...options });
    await stage.store.tasks.pause(name, { ...change(fromMs), untilMs: untilMs === null ? null : fromMs + untilMs });
    return { task, fromMs };
  };
  const accountOf = async (taskId: number, fromMs: number, toMs: number) => {
    const { slots, ranges } = await stage.store.history.slots(taskId, fromMs + 1, toMs, 50);
    return {
      slots: slots.map(({ slotMs }) => (slotMs - fromMs) / s).sort((a, b) => a - b),
      ranges: ranges.map(({ fromMs: first, toMs: last, outcome, reason }) =>
        [(first - fromMs) / s, (last - fromMs) / s, `${outcome}: ${reason}`].join(" "),
      ),
    };
  };

  it("ends as of its end time, however late: earlier slots are skipped, later ones and one at that time planned", async () => {
    const { task, fromMs } = await pausedTask("ends-late", 30 * s);
    const waiting = await stage.enqueue(task, { dueMs: fromMs });
    expect(await stage.store.tasks.endPauses(change(fromMs + 29 * s))).toEqual({
      resumed: [],
      nextMs: fromMs + 30 * s,
    });
    expect(await stage.store.tasks.endPauses(change(fromMs + 47 * s))).toEqual({
      resumed: ["ends-late"],
      nextMs: null,
    });
    const record = await stage.store.tasks.byName("ends-late");
    expect(record).toMatchObject({ paused: null, nextSlotMs: fromMs + 30 * s });
    expect(await stage.store.runs.find(waiting)).toMatchObject({ state: "ready" });
    await stage.plan([record], session, fromMs + 60 * s);
    expect(await accountOf(task.taskId, fromMs, fromMs + 60 * s)).toEqual({
      slots: [30, 40, 50, 60],
      ranges: ["10 20 skipped: task paused"],
    });
    expect(await stage.store.tasks.endPauses(change(fromMs + 90 * s))).toEqual({ resumed: [], nextMs: null });
  });

  it.each(["edit", "pause", "remove", "resume"] as const)(
    "is over for a %s that comes before the leader has processed its end",
    async (act) => {
      const { task, fromMs } = await pausedTask(`over-${act}`, 30 * s);
      const at = change(fromMs + 47 * s);
      if (act === "edit") await stage.store.tasks.save({ ...task.definition, description: "edited" }, null, at);
      else await stage.store.tasks[act](task.name, at);
      const { ranges } = await accountOf(task.taskId, fromMs, fromMs + 60 * s);
      expect(ranges).toContain("10 20 skipped: task paused");
      const untold = ["30 40", "40 40"].some((range) => ranges.includes(`${range} skipped: task paused`));
      expect(untold, "slots after its end are not told as inside it").toBe(false);
      if (act !== "resume") expect(ranges.some((range) => range.startsWith("30 40 missed"))).toBe(true);
      else expect(await stage.store.tasks.byName(task.name)).toMatchObject({ nextSlotMs: fromMs + 30 * s });
    },
  );

  it("gets another end from another pause, or none from a pause without an end; held runs stay held", async () => {
    const { task, fromMs } = await pausedTask("another-end", 30 * s);
    const waiting = await stage.enqueue(task, { dueMs: fromMs });
    const pausedOf = async () => (await stage.store.tasks.byName(task.name)).paused;
    await stage.store.tasks.pause(task.name, { ...change(fromMs + 15 * s), author: "ann", untilMs: fromMs + 50 * s });
    expect(await pausedOf()).toMatchObject({ atMs: fromMs, by: "ann", untilMs: fromMs + 50 * s });
    await stage.store.tasks.pause(task.name, change(fromMs + 25 * s));
    expect(await pausedOf()).toMatchObject({ atMs: fromMs, untilMs: null });
    expect(await stage.store.tasks.endPauses(change(fromMs + 60 * s))).toEqual({ resumed: [], nextMs: null });
    expect(await stage.store.runs.find(waiting)).toMatchObject({ state: "paused" });
    await stage.store.tasks.resume(task.name, change(fromMs + 65 * s));
    expect((await accountOf(task.taskId, fromMs, fromMs + 60 * s)).ranges.sort()).toEqual([
      "10 10 skipped: task paused",
      "20 20 skipped: task paused",
      "30 60 skipped: task paused",
    ]);
  });

  it("is applied to all tasks of a filter; tasks that an operation reaches after the end are passed over", async () => {
    const { operations, tasks } = stage.store;
    const untilMs = stage.nowMs + 30 * s;
    const names = ["filtered-a", "filtered-b", "filtered-c"];
    for (const name of names) await stage.task(name, { group: "filtered", schedule: every("10s") });
    await tasks.pause("filtered-b", change(stage.nowMs));
    const request = (given: object) => ({
      kind: "pause" as const,
      filter: { group: "filtered" },
      author: "ann",
      reason: "",
      ...given,
    });
    const id = await operations.begin(request({ pauseUntilMs: untilMs }), "pause filtered", stage.nowMs);
    while ((await operations.step(stage.nowMs, id)).stepped !== null);
    expect(await operations.find(id)).toMatchObject({ state: "done", total: 2, done: 2, pauseUntilMs: untilMs });
    const ends = (await tasks.byNames(names)).map(({ name, paused }) => [name, paused?.untilMs]).sort();
    expect(ends, "what is paused already keeps its own").toEqual([
      ["filtered-a", untilMs],
      ["filtered-b", null],
      ["filtered-c", untilMs],
    ]);
    expect((await tasks.endPauses(change(untilMs))).resumed.sort()).toEqual(["filtered-a", "filtered-c"]);
    const late = await operations.begin(request({ pauseUntilMs: untilMs }), "pause late", stage.nowMs);
    while ((await operations.step(untilMs, late)).stepped !== null);
    expect(await operations.find(late)).toMatchObject({ state: "done", done: 0, passed: 2 });
    const wrong = { code: "OPTION_INVALID" };
    await expect(operations.begin(request({ pauseUntilMs: stage.nowMs }), "past", stage.nowMs)).rejects.toMatchObject({
      ...wrong,
      path: "pauseUntil",
    });
    await expect(
      operations.begin(request({ kind: "resume", pauseUntilMs: untilMs }), "none", stage.nowMs),
    ).rejects.toMatchObject(wrong);
  });

  it("refuses an end in the past, and pauses nothing", async () => {
    const task = await stage.task("past-end", { group: "past-end" });
    const paused = stage.store.tasks.pause(task.name, { ...change(stage.nowMs), untilMs: stage.nowMs });
    await expect(paused).rejects.toMatchObject({ code: "OPTION_INVALID", path: "until" });
    expect(await stage.store.tasks.byName(task.name)).toMatchObject({ paused: null });
  });
});

describe("a pause with an end, in a process", () => {
  const towers: TestTower[] = [];
  afterEach(async () => {
    for (const tower of towers.splice(0)) await tower.close();
  });

  it("ends by itself: every later slot fires on time, and waiting runs start", async () => {
    const starts: string[] = [];
    const tower = await testTower({
      store: postgres().direct,
      now: "2030-01-01T00:00:00Z",
      tasks: (carillon) =>
        void carillon.task("minutely", { schedule: every("1m") }, (run) => {
          starts.push(
            `${run.slot?.toISOString().slice(11, 19) ?? "enqueued"} at ${tower.now().toISOString().slice(11, 19)}`,
          );
        }),
    });
    towers.push(tower);
    await tower.carillon.pause("minutely", { until: "2030-01-01T00:03:00Z", reason: "the bank is closed" });
    await tower.carillon.enqueue("minutely");
    await tower.advanceTo("2030-01-01T00:04:30Z");
    expect(starts.sort()).toEqual(["00:03:00 at 00:03:00", "00:04:00 at 00:04:00", "enqueued at 00:03:00"]);
    await expect(tower.carillon.pause("minutely", { until: "yesterday" })).rejects.toMatchObject({
      code: "OPTION_INVALID",
      path: "until",
    });
  });
});
