import pg from "pg";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { at, cron, defineTask, every, type Task, type TaskOptions } from "../../src/index.ts";
import { edited } from "../../src/task/edits.ts";
import { type TestTower, testTower } from "../../src/testing/testing.ts";
import { postgres } from "../support/servers.ts";
import { change, openStage } from "../support/store-stage.ts";

type Tenant = { tenant: number };

describe("schedules of a task", () => {
  const towers: TestTower[] = [];
  afterEach(async () => {
    for (const tower of towers.splice(0)) await tower.close();
  });

  async function open(options: TaskOptions = {}) {
    const ran: string[] = [];
    let digest: Task<Tenant | undefined> | undefined;
    const tower = await testTower({
      store: postgres().direct,
      now: "2030-01-01T00:00:00Z",
      tasks: (carillon) => {
        digest = carillon.task<Tenant | undefined>("digest", options, (run, payload) => {
          ran.push(`${run.task} ${run.schedule} ${run.slot?.toISOString().slice(11, 16)} ${payload?.tenant ?? "-"}`);
        });
      },
    });
    towers.push(tower);
    const { store } = await tower.carillon.open();
    const now = () => change(tower.now().getTime());
    /** Returns the name and version of each stored task. */
    const stored = async () => (await store.tasks.list()).map(({ name, version }) => `${name} ${version}`);
    return { tower, store, ran, now, stored, digest: digest as Task<Tenant | undefined> };
  }

  it("run with its handler, each with its own slots, payload and records", async () => {
    const { tower, store, ran, digest } = await open({ schedule: every("2h") });
    await digest.schedule("tenant-7", cron("0 3 * * *"), { payload: { tenant: 7 } });
    const { next, ...made } = await digest.schedule("tenant-8", cron("0 9 * * *", { zone: "Europe/Berlin" }), {
      payload: { tenant: 8 },
    });
    expect(next).toEqual(new Date("2030-01-01T08:00:00Z"));
    expect(made).toMatchObject({ name: "tenant-8", task: "digest:tenant-8", paused: false, changed: true });
    await tower.advance("4h");
    expect(ran).toEqual(["digest null 02:00 -", "digest tenant-7 03:00 7", "digest null 04:00 -"]);
    await tower.advance("4h");
    expect(ran.slice(-2).sort()).toEqual(["digest null 08:00 -", "digest tenant-8 08:00 8"]);
    const ids = (await store.tasks.byNames(["digest", "digest:tenant-7", "digest:tenant-8"])).map(
      ({ taskId }) => taskId,
    );
    const counters = await store.tasks.counters(ids);
    expect(ids.map((id) => counters.get(id)?.succeeded)).toEqual([4, 1, 1]);
  });

  it("are stored once, changed by the latest call, and gone when they are removed", async () => {
    const { tower, ran, digest, stored } = await open();
    const hourly = async (payload: Tenant) => (await digest.schedule("a", every("1h"), { payload })).changed;
    expect(await hourly({ tenant: 1 })).toBe(true);
    expect(await hourly({ tenant: 1 })).toBe(false);
    await tower.advance("1h");
    expect(await hourly({ tenant: 2 })).toBe(true);
    await digest.schedule("b", cron("30 1 * * *"));
    const names = async () => {
      const found: unknown[] = [];
      for await (const { name, payload, next } of digest.schedules()) found.push([name, payload, next?.toISOString()]);
      return found;
    };
    expect(await names()).toEqual([
      ["a", { tenant: 2 }, "2030-01-01T02:00:00.000Z"],
      ["b", null, "2030-01-01T01:30:00.000Z"],
    ]);
    await tower.advance("1h");
    expect(ran).toEqual(["digest a 01:00 1", "digest b 01:30 -", "digest a 02:00 2"]);
    expect([await digest.unschedule("a"), await digest.unschedule("a"), await digest.unschedule("c")]).toEqual([
      true,
      false,
      false,
    ]);
    await tower.advance("2h");
    expect(ran).toHaveLength(3);
    expect(await stored()).toEqual(["digest 1", "digest:b 1"]);
    // A schedule that is created again under its former name continues the former one, with its history and versions.
    await digest.schedule("a", every("1h"));
    expect(await stored()).toEqual(["digest 1", "digest:a 3", "digest:b 1"]);
  });

  it("are paused separately, and end as their schedule says", async () => {
    const { tower, ran, digest } = await open();
    await digest.schedule("a", every("1h"));
    await digest.schedule("b", every("1h"));
    await digest.schedule("once", at("2030-01-01T00:30:00Z"));
    await tower.carillon.pause("digest:a");
    await tower.advance("1h");
    expect(ran).toEqual(["digest once 00:30 -", "digest b 01:00 -"]);
    const states: unknown[] = [];
    for await (const { name, paused, next } of digest.schedules()) states.push([name, paused, next?.getTime() ?? null]);
    expect(states).toEqual([
      ["a", true, null],
      ["b", false, Date.parse("2030-01-01T02:00:00Z")],
      ["once", false, null],
    ]);
    await tower.carillon.resume("digest:a");
    await tower.advance("1h");
    expect(ran.slice(2).sort()).toEqual(["digest a 02:00 -", "digest b 02:00 -"]);
  });

  it("follow their task: options they do not set are the task's, whichever process changes it", async () => {
    const { tower, store, now, stored, digest } = await open({ retry: 2, priority: 7, slotPayload: { tenant: 1 } });
    const misfire = "skip" as const;
    await digest.schedule("a", every("1h"), { payload: { tenant: 2 }, misfire });
    const definition = async (name: string) => (await store.tasks.byName(name)).definition;
    expect(await definition("digest:a")).toMatchObject({ retry: { attempts: 2 }, priority: 7, of: "digest" });
    // An edit of the task's own schedule or payload does not change its other schedules.
    await store.tasks.save(edited(await definition("digest"), { slotPayload: { tenant: 3 } }), null, now());
    await tower.advance("1m");
    expect(await stored()).toEqual(["digest 2", "digest:a 1"]);
    await store.tasks.save(edited(await definition("digest"), { timeout: "5s", retry: 4 }), null, now());
    await tower.advance("1m");
    expect(await stored()).toEqual(["digest 3", "digest:a 2"]);
    const followed = await definition("digest:a");
    expect(followed).toMatchObject({ timeoutMs: 5_000, retry: { attempts: 4 }, slotPayload: { tenant: 2 } });
    expect(followed).toMatchObject({ misfire: { policy: "skip" }, schedule: { type: "every" } });
    expect(followed.asDefined).toBeUndefined();
    // An edit of a schedule's own option by hand survives a change of the task.
    await store.tasks.save(edited(followed, { misfire: "all" }), null, now());
    await store.tasks.save(edited(await definition("digest"), { priority: 1 }), null, now());
    await tower.advance("1m");
    expect(await definition("digest:a")).toMatchObject({
      priority: 1,
      misfire: { policy: "all" },
      asDefined: { misfire: { policy: "skip" } },
    });
    expect((await store.tasks.versions("digest:a"))[0]).toMatchObject({ reason: "task digest was changed" });
  });

  it("are removed with their task", async () => {
    const { tower, stored, ran, digest } = await open();
    for (const name of ["a", "b", "c"]) await digest.schedule(name, every("1h"));
    await tower.carillon.remove("digest");
    expect(await stored()).toEqual([]);
    await tower.advance("2h");
    expect(ran).toEqual([]);
    await expect(digest.schedule("a", every("1h"))).rejects.toMatchObject({ code: "TASK_UNKNOWN", path: "of" });
  });

  it("are stored and removed in the caller's own transaction, or not at all", async () => {
    const { tower, ran, digest, stored } = await open();
    const client = new pg.Client(postgres().direct);
    await client.connect();
    try {
      await client.query("begin");
      await digest.schedule("a", every("1h"), { tx: client });
      expect(await stored()).toEqual(["digest 1"]);
      await client.query("rollback");
      expect(await stored()).toEqual(["digest 1"]);
      await client.query("begin");
      await digest.schedule("a", every("1h"), { tx: client });
      await client.query("commit");
      await tower.advance("1h");
      expect(ran).toEqual(["digest a 01:00 -"]);
      const gone = () => digest.unschedule("a", { tx: client, reason: "left" });
      await client.query("begin");
      expect([await gone(), await gone()]).toEqual([true, false]);
      await client.query("rollback");
      expect(await stored()).toEqual(["digest 1", "digest:a 1"]);
      await client.query("begin");
      await digest.schedule("b", every("1h"), { tx: client });
      expect([await gone(), await digest.unschedule("b", { tx: client })]).toEqual([true, true]);
      await client.query("commit");
    } finally {
      await client.end();
    }
    expect(await stored()).toEqual(["digest 1"]);
    await tower.advance("2h");
    expect(ran).toHaveLength(1);
  });

  it("are stored many at once, and those missing from the list are removed on request", async () => {
    const { tower, store, ran, now, stored, digest } = await open();
    const hourly = every("1h");
    await digest.schedule("old", hourly);
    await digest.schedule("gone", hourly);
    await digest.unschedule("gone");
    await store.calendars.set("holidays", { zone: "UTC", weekend: [], holidays: [] }, now());
    const some = [
      { name: "a", schedule: hourly, payload: { tenant: 1 } },
      { name: "gone", schedule: hourly },
      {
        name: "b",
        schedule: cron("30 * * * *", { zone: "Europe/Berlin" }),
        calendar: { name: "holidays", on: "working-days" as const },
      },
    ];
    const { created, ...others } = await digest.scheduleAll(some);
    expect(created.sort()).toEqual(["a", "b", "gone"]);
    expect(others).toEqual({ changed: [], removed: [] });
    expect(await digest.scheduleAll(some)).toEqual({ created: [], changed: [], removed: [] });
    expect(await stored()).toEqual(["digest 1", "digest:a 1", "digest:b 1", "digest:gone 2", "digest:old 1"]);
    expect((await store.tasks.versions("digest:a"))[0]).toMatchObject({ version: 1, author: "tower" });
    await tower.advance("1h");
    expect(ran.sort()).toEqual(["digest a 01:00 1", "digest b 00:30 -", "digest gone 01:00 -", "digest old 01:00 -"]);
    const fewer = [{ name: "a", schedule: hourly, payload: { tenant: 2 } }];
    const { removed, ...rest } = await digest.scheduleAll(fewer, { others: "remove", reason: "the tenants of today" });
    expect(removed.sort()).toEqual(["b", "gone", "old"]);
    expect(rest).toEqual({ created: [], changed: ["a"] });
    expect(await stored()).toEqual(["digest 1", "digest:a 2"]);
    await tower.advance("1h");
    expect(ran.slice(4)).toEqual(["digest a 02:00 2"]);
    // After that, the schedules take over changes of their task again.
    await store.tasks.save(edited((await store.tasks.byName("digest")).definition, { priority: 2 }), null, now());
    await tower.advance("1m");
    expect((await store.tasks.byName("digest:a")).definition.priority).toBe(2);
    expect(await digest.scheduleAll([], { others: "remove" })).toEqual({ created: [], changed: [], removed: ["a"] });
  });

  it("are stored many at once in the caller's own transaction, or none of them", async () => {
    const { digest, stored } = await open();
    await digest.schedule("old", every("1h"));
    const client = new pg.Client(postgres().direct);
    await client.connect();
    onTestFinished(() => client.end());
    const list = [
      { name: "a", schedule: every("1h") },
      { name: "b", schedule: every("2h") },
    ];
    for (const end of ["rollback", "commit"]) {
      await client.query("begin");
      const set = await digest.scheduleAll(list, { others: "remove", tx: client });
      expect(set).toEqual({ created: ["a", "b"], changed: [], removed: ["old"] });
      expect(await stored()).toEqual(["digest 1", "digest:old 1"]);
      await client.query(end);
    }
    expect(await stored()).toEqual(["digest 1", "digest:a 1", "digest:b 1"]);
  });

  it("are all refused if one of them is invalid", async () => {
    const { digest, stored } = await open();
    const good = { name: "a", schedule: every("1h") };
    const refusals: string[] = [];
    for (const [list, options] of [
      [[good, { name: "b" }], {}],
      [[good, good], {}],
      [[good, { ...good, name: "b", retry: 3 }], {}],
      [[good, { schedule: every("1h") }], {}],
      [[good], { others: "drop" }],
      [[good], { other: "remove" }],
      [{ a: good }, {}],
    ] as [never, never][])
      refusals.push(await digest.scheduleAll(list, options).then(String, (e) => `${e.code} ${e.path}: ${e.message}`));
    expect(refusals).toEqual([
      "TASK_INVALID schedule: task digest:b: it has no schedule",
      'OPTION_INVALID [1].name: two schedules are called "a"',
      'OPTION_INVALID [1].retry: a schedule has no option "retry"',
      "OPTION_INVALID name: the name of a schedule of task digest is undefined",
      'OPTION_INVALID others: others is "drop"',
      'OPTION_INVALID : the call has no option "other"; did you mean "others"?',
      "OPTION_INVALID : the schedules are no list",
    ]);
    expect(await stored()).toEqual(["digest 1"]);
  });

  it("are refused with the reason and a hint", async () => {
    const { tower, store, now, digest } = await open();
    await digest.schedule("a", every("1h"));
    await store.tasks.save(defineTask("digest:plain", { schedule: every("1h") }), null, now());
    const refusals = async (...asked: (() => Promise<unknown>)[]) =>
      Promise.all(asked.map((ask) => ask().catch((error) => `${error.code} ${error.path}: ${error.message}`)));
    const save = (name: string, options: TaskOptions) => async () =>
      store.tasks.save(defineTask(name, options), null, now());
    const schedule = every("1h");
    expect(
      await refusals(
        () => digest.schedule("b", { type: "manual" }),
        () => digest.schedule("", every("1h")),
        () => digest.schedule("plain", every("1h")),
        () => digest.schedule("b", every("1h"), { retry: 3 } as never),
        save("digest:b", { of: "digest", schedule, retry: 3 }),
        save("other:b", { of: "digest", schedule }),
        save("nothing:b", { of: "nothing", schedule }),
        save("digest:a:b", { of: "digest:a", schedule }),
        save("digest:a", { schedule }),
        async () => edited((await store.tasks.byName("digest:a")).definition, { retry: 3 }),
        () => tower.carillon.schedules.set("nothing", "a", every("1h")),
      ),
    ).toEqual([
      "TASK_INVALID schedule: task digest:b: it has no schedule",
      "TASK_INVALID of: task digest:: it is called as no schedule of digest is",
      "TASK_INVALID of: task digest:plain: it is a task of its own, and cannot become a schedule of digest",
      'OPTION_INVALID : a schedule has no option "retry"',
      "TASK_INVALID retry: task digest:b: retry is said by task digest, for all of its schedules",
      "TASK_INVALID of: task other:b: it is called as no schedule of digest is",
      'TASK_UNKNOWN of: task nothing:b: it is a schedule of "nothing", which is no task',
      "TASK_INVALID of: task digest:a:b: digest:a is a schedule itself, of digest",
      "TASK_INVALID of: task digest:a: it is a schedule of digest, and cannot become a task of its own",
      "TASK_INVALID retry: task digest:a: retry is said by task digest, for all of its schedules",
      'TASK_UNKNOWN : there is no task "nothing"',
    ]);
    expect(await digest.unschedule("plain"), "a task of its own stays").toBe(false);
    expect((await store.tasks.byName("digest:plain")).version).toBe(1);
  });

  it("are removed by the next pass of a leader if the process removing their task died midway", async () => {
    const stage = await openStage(postgres());
    onTestFinished(() => stage.close());
    const { tasks } = stage.store;
    const save = (name: string, options: TaskOptions) =>
      tasks.save(defineTask(name, options), null, change(stage.nowMs));
    const { record } = await save("digest", {});
    for (const name of ["a", "b"]) await save(`digest:${name}`, { of: "digest", schedule: every("1h") });
    expect(await tasks.followTasks(null, change(stage.nowMs))).toMatchObject({ changed: 0, removed: 0 });
    await stage.rows("update $s.task set deleted_ms = changed_ms where id = $1", [record.taskId]);
    expect(await tasks.followTasks([record.taskId], change(stage.nowMs))).toMatchObject({ changed: 0, removed: 2 });
    expect(await tasks.list()).toEqual([]);
  });

  it("that became invalid through an edit of their task stay unchanged, and are reported", async () => {
    const stage = await openStage(postgres());
    onTestFinished(() => stage.close());
    const { tasks } = stage.store;
    const save = (name: string, options: TaskOptions) =>
      tasks.save(defineTask(name, options), null, change(stage.nowMs));
    await save("digest", {});
    await save("digest:a", { of: "digest", schedule: every("1h") });
    await save("digest:b", { of: "digest", schedule: every("1h", { mode: "delay" }) });
    await save("digest", { route: "broadcast" });
    const { left, ...followed } = await tasks.followTasks(null, change(stage.nowMs));
    expect(followed).toMatchObject({ changed: 1 });
    expect(left).toMatchObject([{ task: "digest:b", error: expect.stringContaining("cannot go with a fixed delay") }]);
    expect((await tasks.byName("digest:b")).definition.route).toBeUndefined();
  });
});
