import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { afterEach, describe, expect, it, vi } from "vitest";
import { cron, every, type Run } from "../../src/index.ts";
import { type TestTower, type TestTowerOptions, testTower } from "../../src/testing/testing.ts";
import { postgres } from "../support/servers.ts";
import { complaints, recordingLog } from "../support/store-stage.ts";

const towers: TestTower[] = [];
afterEach(async () => {
  for (const tower of towers.splice(0)) await tower.close();
});

async function open(options: TestTowerOptions): Promise<TestTower> {
  const tower = await testTower({ store: postgres().direct, now: "2030-01-01T00:00:00Z", ...options });
  towers.push(tower);
  return tower;
}

const seen = (runs: { slotMs: number | null }[]) => runs.map(({ slotMs }) => new Date(slotMs ?? 0).toISOString());

describe("a test tower", () => {
  it("does not open with an undefined store, as from a misspelt variable", async () => {
    const opened = testTower({ store: undefined as never, tasks: () => undefined });
    await expect(opened).rejects.toMatchObject({ code: "OPTION_INVALID", path: "store" });
  });

  it("fires every slot of half a day and of four months, each once and on time", async () => {
    const starts: [string, number, number][] = [];
    const note = (run: Run) => void starts.push([run.task, run.slot?.getTime() ?? 0, tower.now().getTime()]);
    const { log, lines } = recordingLog();
    const tower = await open({
      log,
      tasks(carillon) {
        carillon.task("monthly", { schedule: cron("0 9 1 * *", { zone: "Europe/Berlin" }) }, note);
        carillon.task("hourly", { schedule: every("1h") }, note);
      },
    });
    const ended = await tower.advance("12h");
    expect(ended.filter(({ task }) => task === "hourly")).toHaveLength(12);
    await tower.carillon.pause("hourly");
    starts.length = 0;
    const months = await tower.advanceTo("2030-05-15T00:00:00Z");
    expect(seen(months)).toEqual(
      Array.from({ length: 4 }, (_, i) => {
        // The slots from February to May. From 31 March on, Berlin is two hours ahead of UTC.
        const month = String(i + 2).padStart(2, "0");
        return `2030-${month}-01T0${i >= 2 ? 7 : 8}:00:00.000Z`;
      }),
    );
    for (const [, slotMs, nowMs] of starts) expect(nowMs - slotMs).toBeLessThanOrEqual(50);
    expect(tower.now().toISOString()).toBe("2030-05-15T00:00:00.000Z");
    // Virtual time has leapt over hours and days, which must not be reported as a blocked event loop.
    expect(complaints(lines)).toEqual([]);
  });

  it("reads the waiting runs with every heartbeat, however slow, so that its time passes no run that is due", async () => {
    const names = new Set<string>();
    const query = pg.Client.prototype.query as unknown as (...given: unknown[]) => Promise<unknown>;
    vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (this: pg.Client, ...given: unknown[]) {
      const { name = "" } = given[0] as { name?: string };
      names.add(name);
      const answer = query.apply(this, given);
      return name.startsWith("session-") ? answer.then((rows) => pause(110, rows)) : answer;
    } as never);
    const starts: string[] = [];
    const note = () => void starts.push(tower.now().toISOString().slice(11, 16));
    const tower = await open({ tasks: (carillon) => void carillon.task("hourly", { schedule: every("1h") }, note) });
    await tower.advance("3h").finally(() => vi.restoreAllMocks());
    expect(starts).toEqual(["01:00", "02:00", "03:00"]);
    expect(names).toContain("session-beat");
    expect(names).not.toContain("session-beat-bare");
  });

  it("advances its time through the wait of a batch, without real time spent on collecting runs", async () => {
    const sizes: number[] = [];
    const tower = await open({
      patience: "1h",
      tasks(carillon) {
        carillon.task<number>("index", { batch: { size: 100, wait: "30s" } }, (runs) => {
          sizes.push(runs.length);
          return tower.now().toISOString();
        });
      },
    });
    await tower.carillon.enqueueMany("index", [1, 2, 3] as never[], { in: "1m" });
    const ended = await tower.runUntilIdle();
    expect(sizes).toEqual([3]);
    expect(ended).toHaveLength(3);
    expect(await tower.carillon.runs.result(ended[0]?.runId as number)).toBe("2030-01-01T00:01:30.000Z");
    await tower.fake<number>("index", (_run, payload) => payload);
    expect(await tower.run("index", 7)).toMatchObject({ outcome: "succeeded", result: 7 });
  });

  it("runs one task to its end: through back-off, with each attempt's log", async () => {
    let tries = 0;
    const tower = await open({
      tasks(carillon) {
        const retry = { attempts: 4, delay: "1h" as const, maxDelay: "5h" as const, jitter: 0 };
        carillon.task<{ a: number }>("flaky", { retry }, (run, { a }) => {
          run.log.info(`try ${run.attempt}`);
          if (++tries < 3) throw new Error("not yet");
          return { doubled: a * 2 };
        });
        carillon.task("hopeless", { retry: 2 }, () => {
          throw new Error("a text");
        });
      },
    });
    const began = tower.now().getTime();
    const report = await tower.run("flaky", { a: 21 });
    expect(report).toMatchObject({ outcome: "succeeded", result: { doubled: 42 }, error: null, attempts: 3 });
    expect(report.logs.map(({ message }) => message)).toEqual(["try 1", "try 2", "try 3"]);
    expect(report.earlier.map(({ outcome }) => outcome)).toEqual(["failed", "failed"]);
    // The two retries came after one hour and after two more hours.
    expect((tower.now().getTime() - began) / 3_600_000).toBeCloseTo(3, 2);
    expect(await tower.run("hopeless")).toMatchObject({
      outcome: "failed",
      attempts: 2,
      error: { message: "a text" },
    });
  });

  it("starts an addressed run when it is due, and its next attempt too", async () => {
    const beganMs: number[] = [];
    const tower = await open({
      tasks(carillon) {
        carillon.task("routed", { route: "sticky", retry: { attempts: 2, delay: "1h", jitter: 0 } }, ({ attempt }) => {
          beganMs.push(tower.now().getTime() - startMs);
          if (attempt === 1) throw new Error("not yet");
        });
      },
    });
    const startMs = tower.now().getTime();
    await tower.carillon.enqueue("routed", null, { in: "2h" });
    await tower.advance("1d");
    expect(beganMs.map((ms) => Math.round(ms / 1_000))).toEqual([7_200, 10_800]);
  });

  it("starts at once a routed run from a transaction, which the store reports after its commit", async () => {
    const beganMs: number[] = [];
    const tower = await open({
      tasks(carillon) {
        carillon.task("routed", { route: "sticky" }, () => {
          beganMs.push(tower.now().getTime() - startMs);
          throw new Error("again");
        });
      },
    });
    const startMs = tower.now().getTime();
    const { store } = await tower.carillon.open();
    let { runId } = await tower.carillon.enqueue("routed", null);
    for (let times = 0; times < 4; times++) {
      await tower.advance("10s");
      const why = { author: "a test", reason: "again", nowMs: tower.now().getTime() };
      ({ runId } = await store.operations.rerun(runId, why));
    }
    await tower.advance("10s");
    expect(beganMs).toEqual([0, 10_000, 20_000, 30_000, 40_000]);
  });

  it("passes an attempt's worker slot to the next run while the retry waits", async () => {
    const beganMs: [number, number][] = [];
    const tower = await open({
      tasks(carillon) {
        const retry = { attempts: 2, delay: "1h" as const, jitter: 0 };
        carillon.task<number>("narrow", { limit: { perWorker: 1 }, retry }, async (_run, which) => {
          beganMs.push([which, tower.now().getTime() - startMs]);
          await tower.sleep("10s");
          if (which === 1) throw new Error("not yet");
        });
      },
    });
    const startMs = tower.now().getTime();
    for (const which of [1, 2, 3]) await tower.carillon.enqueue("narrow", which);
    await tower.advance("1d");
    expect(beganMs.map(([which, ms]) => [which, Math.round(ms / 1_000)])).toEqual([
      [1, 0],
      [2, 10],
      [3, 20],
      [1, 3_610],
    ]);
  });

  it("reports a success of a task with history: failures; runs that no caller awaits leave no row", async () => {
    const tower = await open({
      tasks: (carillon) => void carillon.task("ping", { history: "failures" }, (run) => run.log.info("here") ?? "pong"),
    });
    expect(await tower.run("ping")).toMatchObject({
      outcome: "succeeded",
      result: "pong",
      attempts: 1,
      logs: [{ message: "here" }],
    });
    const { runId } = await tower.carillon.enqueue("ping");
    await tower.advance("1s");
    const { store } = await tower.carillon.open();
    await expect(store.runs.find(runId)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
  });

  it("runs and closes while the test framework's fake timers are on", async () => {
    vi.useFakeTimers();
    try {
      const never = (run: Run) => new Promise((resolve) => run.signal.addEventListener("abort", resolve));
      const tower = await open({
        patience: "20ms",
        tasks: (carillon) => void carillon.task("hangs", { timeout: "10m", schedule: every("1h") }, never),
      });
      expect(await tower.run("hangs")).toMatchObject({ outcome: "succeeded" });
      expect(await tower.advance("2h")).toHaveLength(2);
      await tower.carillon.pause("hangs");
      await tower.close();
    } finally {
      vi.useRealTimers();
    }
  });

  it("a timeout and a handler's sleep take no real time, and serial runs wait for each other", async () => {
    const tower = await open({
      patience: "50ms",
      tasks(carillon) {
        const never = (run: Run) =>
          new Promise((_, reject) => run.signal.addEventListener("abort", () => reject(run.signal.reason)));
        carillon.task("hangs", { timeout: "10m" }, never);
        carillon.task("sleeps", { overlap: "queue" }, (run) => tower.sleep("10m", run.signal));
      },
    });
    expect(await tower.run("hangs")).toMatchObject({ outcome: "failed", error: { code: "TIMEOUT" } });
    await Promise.all([1, 2, 3].map(() => tower.carillon.enqueue("sleeps")));
    const ended = await tower.advance("31m");
    expect(ended.map(({ task, outcome }) => [task, outcome])).toEqual(
      Array.from({ length: 3 }, () => ["sleeps", "succeeded"]),
    );
    const tens = ended.map(({ endedMs }) => Math.round(((endedMs ?? 0) - (ended[0]?.startedMs ?? 0)) / 600_000));
    expect(tens).toEqual([1, 2, 3]);
  });

  it("stops its clock while a handler waits for something real", async () => {
    const tower = await open({
      patience: "30s",
      tasks: (carillon) =>
        void carillon.task("real", { schedule: every("10s") }, async () => {
          const at = tower.now().getTime();
          await pause(30);
          return tower.now().getTime() - at;
        }),
    });
    const ended = await tower.advance("1m");
    expect(ended).toHaveLength(6);
    const { store } = await tower.carillon.open();
    for (const { runId } of ended) expect((await store.runs.find(runId)).result).toBe(0);
  });

  it.each(["allow", "queue"] as const)(
    "continues while a handler sleeps in a transaction that has completed its run: %s",
    async (overlap) => {
      const client = new pg.Client({ connectionString: postgres().direct });
      await client.connect();
      const tower = await open({
        tasks: (carillon) =>
          void carillon.task("books", { schedule: every("10s"), overlap }, async (run) => {
            if (run.slot?.toISOString() !== "2030-01-01T00:00:10.000Z") return "plain";
            await client.query("begin");
            await run.complete(client, "kept");
            await tower.sleep("12s", run.signal);
            await client.query("commit");
            return "too late to count";
          }),
      });
      const ended = await tower.advance("25s");
      expect(ended.map(({ outcome }) => outcome)).toEqual(["succeeded", "succeeded"]);
      const first = ended.find(({ slotMs }) => slotMs === Date.parse("2030-01-01T00:00:10Z"));
      const { store } = await tower.carillon.open();
      expect(await store.runs.find(first?.runId ?? 0)).toMatchObject({ state: "succeeded", result: "kept" });
      // The second run starts at its own time if runs may overlap; otherwise when the first run has ended.
      const second = ended.find(({ slotMs }) => slotMs === Date.parse("2030-01-01T00:00:20Z"));
      const startedMs = (second?.startedMs ?? 0) - Date.parse("2030-01-01T00:00:00Z");
      expect(startedMs).toBe(overlap === "allow" ? 20_000 : 22_000);
      await client.end();
    },
  );

  it("continues with a fixed delay whose next run is cancelled at the moment it was planned", async () => {
    const tower = await open({
      tasks: (carillon) => void carillon.task("again", { schedule: every("4s", { mode: "delay" }) }, () => "done"),
    });
    const { store } = await tower.carillon.open();
    const [planned] = await store.runs.list({ task: "again", limit: 1 });
    expect(await tower.carillon.cancel(planned?.runId ?? 0)).toBe("cancelled");
    // One period after the cancellation is the slot of the cancelled run, so the next slot comes one millisecond later.
    expect(seen(await tower.advance("10s"))).toEqual(["2030-01-01T00:00:04.001Z", "2030-01-01T00:00:08.001Z"]);
  });

  it("behaves as in production: enqueue, keys, cancel, pause, counters, fences", async () => {
    const fences: number[] = [];
    const tower = await open({
      tasks: (carillon) => void carillon.task("work", {}, (run) => void fences.push(run.fence)),
    });
    const { carillon } = tower;
    const later = await carillon.enqueue("work", undefined, { in: "2h", key: "one" });
    expect(await carillon.enqueue("work", undefined, { in: "5h", key: "one" })).toEqual({ ...later, created: false });
    const unwanted = await carillon.enqueue("work", undefined, { in: "3h" });
    expect(await tower.advance("1h 59m")).toEqual([]);
    expect(await carillon.cancel(unwanted.runId)).toBe("cancelled");
    expect((await tower.advance("2h")).map(({ runId }) => runId)).toEqual([later.runId]);
    await tower.run("work");
    expect(fences[1]).toBeGreaterThan(fences[0] as number);
    const { store } = await carillon.open();
    const { taskId } = await store.tasks.byName("work");
    expect((await store.tasks.counters([taskId])).get(taskId)).toMatchObject({ succeeded: 2, cancelled: 1 });
  });

  it("runs until nothing waits: later enqueues, retries and followers, but no slot that is not due", async () => {
    const ran: unknown[] = [];
    const tower = await open({
      tasks(carillon) {
        carillon.task("hourly", { schedule: every("1h") }, () => void ran.push("hourly"));
        carillon.task("flaky", { retry: { attempts: 3, delay: "20m", backoff: "fixed", jitter: 0 } }, (run) => {
          ran.push(`try ${run.attempt}`);
          if (run.attempt < 3) throw new Error("not yet");
        });
        carillon.task("then", { after: "flaky" }, () => void ran.push("then"));
        carillon.task("never", {}, () => void ran.push("never"));
      },
    });
    expect(await tower.runUntilIdle()).toEqual([]);
    const handle = await tower.carillon.enqueue("flaky", null, { in: "15m" });
    const ended = await tower.runUntilIdle();
    expect(ran).toEqual(["try 1", "try 2", "try 3", "then"]);
    expect(ended.map(({ task, outcome }) => [task, outcome])).toEqual([
      ["flaky", "succeeded"],
      ["then", "succeeded"],
    ]);
    expect(ended[0]?.runId).toBe(handle.runId);
    expect(tower.now().toISOString()).toMatch(/^2030-01-01T00:55:0/);
    await tower.carillon.enqueue("never", null, { in: "3d" });
    await expect(tower.runUntilIdle({ within: "1h" })).rejects.toMatchObject({
      code: "TIMEOUT",
      message: expect.stringContaining("of never is ready after 1h"),
    });
    expect(ran.slice(4)).toEqual(["hourly"]);
  });

  it("lets a test replace a handler and an HTTP request, until the test ends that", async () => {
    const tower = await open({
      tasks(carillon) {
        carillon.task("charge", { retry: { attempts: 2, delay: "1s" } }, () => "charged");
        carillon.task("notify", { http: { url: "https://shop.example/notify" } });
      },
    });
    const unfake = await tower.fake("charge", (run, amount: number) => {
      if (run.attempt === 1) throw new Error("card declined");
      return { charged: amount };
    });
    await tower.fake("notify", () => "told");
    expect(await tower.run("charge", 5)).toMatchObject({ outcome: "succeeded", attempts: 2, result: { charged: 5 } });
    expect(await tower.run("notify")).toMatchObject({ outcome: "succeeded", result: "told" });
    unfake();
    expect(await tower.run("charge", 5)).toMatchObject({ attempts: 1, result: "charged" });
    await expect(tower.fake("chargge", () => null)).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
  });

  it("deletes data past its retention", async () => {
    const tower = await open({ retention: "2d", tasks: (carillon) => void carillon.task("work", {}, () => "done") });
    const { runId } = await tower.run("work");
    const { store } = await tower.carillon.open();
    await tower.advance("1d");
    expect(await store.runs.find(runId)).toMatchObject({ state: "succeeded", result: "done" });
    await tower.advance("3d");
    await expect(store.runs.find(runId)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
  });

  it("refuses invalid calls", async () => {
    const tower = await open({ tasks: (carillon) => void carillon.task("idle", {}, () => undefined) });
    const refused = (code: string) => expect.objectContaining({ code });
    await expect(tower.advanceTo("2029-01-01T00:00:00Z")).rejects.toEqual(refused("OPTION_INVALID"));
    await expect(tower.run("nobody")).rejects.toEqual(refused("TASK_UNKNOWN"));
    const both = await Promise.allSettled([tower.advance("1h"), tower.advance("1h")]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    await tower.carillon.pause("idle");
    await expect(tower.run("idle", undefined, { within: "1h" })).rejects.toEqual(refused("TIMEOUT"));
    await tower.close();
    await expect(tower.advance("1h")).rejects.toEqual(refused("STOPPED"));
  });

  it("leaves nothing behind, and is not blocked by a handler that never ends", async () => {
    const tower = await open({
      patience: "10ms",
      tasks: (carillon) => void carillon.task("endless", {}, () => new Promise(() => undefined)),
    });
    await tower.carillon.enqueue("endless");
    await tower.advance("1m");
    const { schema } = tower.carillon.settings;
    await tower.close();
    const client = new pg.Client({ connectionString: postgres().url });
    await client.connect();
    const { rows } = await client.query("select 1 from pg_namespace where nspname = $1", [schema]);
    await client.end();
    expect(rows).toEqual([]);
  });
});
