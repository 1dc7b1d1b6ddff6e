import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import type { Given } from "../../src/api/contract.ts";
import { cron, every } from "../../src/schedule/schedule.ts";
import { ApiStage } from "../support/api-stage.ts";
import { said } from "../support/remote-stage.ts";

const stage = new ApiStage();
let api: Client;
beforeAll(async () => {
  await stage.open();
  api = stage.client();
});
afterAll(() => stage.close());

test("upcoming fires are listed by time, without paused and manual tasks", async () => {
  await stage.task("yearly", { schedule: cron("0 0 1 1 *") });
  await stage.task("often", { schedule: every("10m") });
  await stage.task("by-hand");
  await stage.task("stopped", { schedule: every("1m") });
  await api.pauseTask({ task: "stopped" });
  const { coming } = await api.listComing({ count: 10 });
  expect(coming.map(({ task, group }) => [task, group])).toEqual([
    ["often", "default"],
    ["yearly", "default"],
  ]);
  expect((await api.listComing({ count: 1 })).coming).toEqual([coming[0]]);
});

test("a timeline shows the fires of each minute, explains crowded minutes, and suggests how to spread them", async () => {
  const shared = { matching: "meets-*", days: 2 };
  for (const name of ["meets-a", "meets-b", "meets-c"]) await stage.task(name, { schedule: cron("0 3 * * *") });
  await stage.task("meets-often", { schedule: every("20s") });
  const line = await api.getTimeline(shared);
  expect([line.fires.length, line.tasks.length, line.foretold]).toEqual([2_880, 2_880, 4]);
  const three = line.fires.flatMap((fires, place) => (fires > 3 ? place : []));
  expect(three.map((place) => [line.fires[place], line.tasks[place]])).toEqual([
    [6, 4],
    [6, 4],
  ]);
  const at = (place: number) => new Date(Date.parse(line.from) + place * 60_000).toISOString();
  const [first = 0] = three;
  expect(at(first)).toMatch(/T03:00:00/);
  const { firing, more } = await api.listFiring({ ...shared, since: at(first), until: at(first + 1) });
  expect([more, firing.map(({ task, fires }) => [task, fires])]).toEqual([
    0,
    [
      ["meets-a", 1],
      ["meets-b", 1],
      ["meets-c", 1],
      ["meets-often", 3],
    ],
  ]);
  const spread = await api.suggestSpread({ ...shared, within: 5 });
  expect([spread.peak, spread.fuller, spread.moves.length]).toEqual([{ before: 6, after: 4 }, 2, 2]);
  const [move] = spread.moves;
  const schedule = { type: "cron" as const, expression: move?.becomes as string };
  const { task = "", version = 0 } = move ?? {};
  await api.editTask({ task, options: { schedule } }, { ifVersion: version });
  // The edit shows at once, although the server caches the timeline.
  expect(Math.max(...(await api.getTimeline(shared)).fires)).toBe(5);
  const theirs = stage.clientOf(await stage.token("viewer", { where: ["theirs"] }));
  expect((await theirs.getTimeline({})).foretold).toBe(0);
});

test("a cached timeline is not served after a change is found, whatever the change's timestamp", async () => {
  const shared = { matching: "shows-*", days: 1 };
  await stage.task("shows-a", { schedule: cron("0 3 * * *") });
  expect((await api.getTimeline(shared)).paused).toBe(0);
  // Simulates a change by another node whose clock is behind and whose transaction took three seconds.
  await stage.rows("update $s.task set paused_ms = 1, changed_ms = $1 where name = 'shows-a'", [Date.now() - 3_000]);
  expect((await api.getTimeline(shared)).paused).toBe(1);
});

test("the latest runs of several tasks come in one answer, newest first, and are empty for tasks without runs", async () => {
  await stage.task("one");
  await stage.task("two");
  const key = await stage.key("worker");
  const session = await stage.join(key, { tasks: ["one", "two"] });
  const runs: number[] = [];
  for (const [task, outcome] of [
    ["one", "succeeded"],
    ["two", "failed"],
    ["one", "failed"],
    ["one", "succeeded"],
  ] as const) {
    const run = await stage.claimed(key, session, task);
    const verdict = { outcome, startedAgoMs: 5, ...(outcome === "failed" ? { error: { message: "no" } } : {}) };
    await stage.poll(key, { session, verdicts: [said(run, verdict)] });
    runs.push(run.runId);
  }
  const { tasks } = await api.listRecentRuns({ task: ["two", "one", "none"], each: 2 });
  expect(tasks.map(({ task, runs: of }) => [task, of.map(({ run, state }) => [run, state])])).toEqual([
    ["two", [[runs[1], "failed"]]],
    [
      "one",
      [
        [runs[3], "succeeded"],
        [runs[2], "failed"],
      ],
    ],
    ["none", []],
  ]);
  for (const { ended, due, tookMs, lateMs } of tasks[1]?.runs ?? []) {
    expect(Date.parse(ended)).toBeGreaterThanOrEqual(Date.parse(due));
    expect([typeof tookMs, typeof lateMs]).toEqual(["number", "number"]);
  }
});

test("a calendar update is compared first, and refused if it would lose most of the upcoming holidays", async () => {
  const days = { zone: "UTC", weekend: [0, 6], holidays: ["2029-01-01", "2030-12-25"] };
  await api.setCalendar({ calendar: "de", ...days }, { ifVersion: 0 });
  const fewer = { calendar: "de", ...days, holidays: [] };
  await expect(api.setCalendar(fewer, { ifVersion: 1 })).rejects.toMatchObject({
    code: "CALENDAR_SHRINKS",
    message: "calendar de has 2 coming holidays, and would have 0: nothing was changed",
    hint: expect.stringContaining("allowShrink"),
  });
  expect((await api.getCalendar({ calendar: "de" })).version, "it is kept").toBe(1);
  await api.createTask({
    task: "feast",
    options: {
      schedule: { type: "cron", expression: "0 9 25 12 *", zone: "UTC" },
      calendar: { name: "de", otherwise: "next" },
      command: { argv: ["/usr/bin/true"] },
    },
  });
  const named = [
    "BEGIN:VCALENDAR",
    "BEGIN:VEVENT",
    "SUMMARY:New Year\\, twice",
    "DTSTART;VALUE=DATE:20301225",
    "END:VEVENT",
    "END:VCALENDAR",
  ].join("\r\n");
  expect(await api.compareCalendar({ ...fewer, ics: named })).toMatchObject({
    name: "de",
    version: 1,
    was: { coming: 2 },
    is: { coming: 1 },
    shrinks: false,
    tasks: [],
    tasksLeft: 0,
    added: [],
    removed: [{ day: "2029-01-01", name: null }],
    notices: [],
  });
  const later = named.replace("20301225", "20310101");
  expect(await api.compareCalendar({ ...fewer, ics: later })).toMatchObject({
    added: [{ day: "2031-01-01", name: "New Year, twice" }],
    removed: [{ day: "2029-01-01" }, { day: "2030-12-25" }],
  });
  await api.setCalendar({ ...fewer, ics: named, allowShrink: true }, { ifVersion: 1 });
  expect((await api.getCalendar({ calendar: "de" })).names).toEqual({ "2030-12-25": "New Year, twice" });
  expect(await api.compareCalendar(fewer), "a day that is taken out is called as its file called it").toMatchObject({
    removed: [{ day: "2030-12-25", name: "New Year, twice" }],
  });
  const year = new Date().getUTCFullYear() + (new Date().toISOString().slice(5) < "12-25T09" ? 0 : 1);
  const holidays = [`${year}-12-25`];
  expect(await api.compareCalendar({ ...fewer, weekend: [], holidays })).toMatchObject({
    tasks: [{ task: "feast", total: 1, more: false, slots: [{ slot: `${year}-12-25T09:00:00.000Z` }] }],
  });
  const { version } = await api.setCalendar({ ...fewer, allowShrink: true }, { ifVersion: 2 });
  expect(version).toBe(3);
  await api.removeTask({ task: "feast" });
  await api.removeCalendar({ calendar: "de" });
  await expect(api.compareCalendar(fewer)).rejects.toMatchObject({ code: "CALENDAR_UNKNOWN" });
});

test("a change with If-Match is refused if the version differs, or if the route supports no versions", async () => {
  await stage.task("dated", { slotPayload: 1 });
  const { version } = await api.getTask({ task: "dated" });
  await api.editTask({ task: "dated", options: { description: "edited" } }, { ifVersion: version });
  await expect(api.removeTask({ task: "dated" }, { ifVersion: version })).rejects.toMatchObject({ code: "TASK_STALE" });
  await expect(api.pauseTask({ task: "dated" }, { ifVersion: version })).rejects.toMatchObject({
    code: "REQUEST_INVALID",
    message: expect.stringContaining("takes no If-Match"),
  });
  await api.removeTask({ task: "dated" }, { ifVersion: version + 1 });
  await expect(api.getTask({ task: "dated" })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
});

test("the runs and slots of a removed task are listed by its name", async () => {
  await stage.task("former", { slotPayload: 1 });
  const { run } = await api.runTask({ task: "former" });
  await api.removeTask({ task: "former" });
  expect((await api.listRuns({ task: "former" })).items).toMatchObject([{ run, task: "former" }]);
  expect((await api.listTaskVersions({ task: "former" })).items).toMatchObject([{ version: 1 }]);
  expect(await api.listSlots({ task: "former" })).toMatchObject({ items: [], next: null });
  await expect(api.runTask({ task: "former" })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
  for (const list of ["listRuns", "listTaskVersions", "listSlots"] as const)
    await expect(api[list]({ task: "formr" })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
});

test("a task may have several schedules, each of which is a task of its own", async () => {
  const daily = { type: "cron", expression: "0 3 * * *", zone: "Europe/Berlin" } as const;
  await stage.task("digest", { slotPayload: "all", retry: 4 });
  const options = { of: "digest", schedule: daily, slotPayload: { tenant: 7 } };
  const made = await api.createTask({ task: "digest:tenant-7", options });
  expect(made).toMatchObject({ of: "digest", schedules: 0, definition: { retry: { attempts: 4 } } });
  const said = { task: "digest:tenant-7", options: { ...options, slotPayload: { tenant: 77 } } };
  expect(await api.defineTask(said)).toMatchObject({ version: 2, changes: [{ part: "slotPayload" }] });
  await api.editTask({ task: "digest:tenant-7", options: { description: "by hand" } });
  // Defining the task sets all its options to the given values; an edit made in between is overwritten.
  expect(await api.defineTask(said)).toMatchObject({ version: 4, edited: [], changes: [{ part: "description" }] });
  await api.createTask({ task: "digest:tenant-8", options });
  expect(await api.getTask({ task: "digest" })).toMatchObject({ of: null, schedules: 2 });
  const names = async (given: Given<"listTasks">) => (await api.listTasks(given)).items.map(({ name }) => name);
  expect(await names({ of: "digest" })).toEqual(["digest:tenant-7", "digest:tenant-8"]);
  expect(await names({ matching: "digest*", schedules: false })).toEqual(["digest"]);
  expect(await names({ matching: "digest*" })).toHaveLength(3);
  await expect(api.createTask({ task: "digest:tenant-7", options })).rejects.toMatchObject({
    code: "TASK_NAME_TAKEN",
  });
  await expect(api.createTask({ task: "none:a", options: { ...options, of: "none" } })).rejects.toMatchObject({
    code: "TASK_UNKNOWN",
    path: "of",
  });
  await api.removeTask({ task: "digest:tenant-8" });
  expect(await names({ of: "digest" })).toEqual(["digest:tenant-7"]);
  await api.removeTask({ task: "digest" });
  expect(await names({ matching: "digest*" })).toEqual([]);
});
