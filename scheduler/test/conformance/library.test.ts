import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { until } from "../../../zookeeper/test/support/until.ts";
import type { Log } from "../../src/base/log.ts";
import { type Carillon, carillon, every, type Run } from "../../src/index.ts";
import type { CarillonOptions } from "../../src/settings/settings.ts";
import { everyPostgres } from "../support/servers.ts";
import { complaints } from "../support/store-stage.ts";

/** Returns a log that collects its lines, so that a test can read them. */
function memoryLog(): Log & { lines: { level: string; message: string; fields: Record<string, unknown> }[] } {
  const lines: { level: string; message: string; fields: Record<string, unknown> }[] = [];
  const write = (level: string) => (fields: object, message: string) => {
    lines.push({ level, message, fields: fields as Record<string, unknown> });
  };
  return { lines, debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

describe.each(everyPostgres())("the library on $title", ({ url }) => {
  const schema = `library_${randomBytes(4).toString("hex")}`;
  const database = new pg.Client({ connectionString: url });
  const towers: Carillon[] = [];
  let log = memoryLog();

  beforeAll(() => database.connect());
  afterEach(async () => {
    await Promise.all(towers.splice(0).map((tower) => tower.stop()));
    await database.query(`drop schema if exists ${schema} cascade`);
  });
  afterAll(() => database.end());

  function make(options: CarillonOptions = {}): Carillon {
    log = memoryLog();
    const tower = carillon({ store: url, schema, handleSignals: false, log, drain: "5s", ...options });
    towers.push(tower);
    return tower;
  }

  async function ended(tower: Carillon, runId: number) {
    const { store } = await tower.open();
    return until(`run ${runId} to end`, async () => {
      const run = await store.runs.find(runId);
      return run.endedMs !== null && run;
    });
  }

  test("a handler gets its payload as parsed by the schema, and its result is kept", async () => {
    const tower = make();
    const seen: unknown[] = [];
    const task = tower.task(
      "settle",
      { payload: z.object({ ledger: z.string(), day: z.coerce.date() }) },
      async (run: Run, { ledger, day }) => {
        seen.push(run.attempt, run.slot, run.key, ledger, day);
        run.progress({ done: 1 });
        run.log.info("settling", { ledger });
        return { settled: ledger };
      },
    );
    await tower.start();
    const { runId, created } = await task.enqueue(
      { ledger: "eu", day: "2026-01-01" as unknown as Date },
      { key: "eu" },
    );
    expect(created).toBe(true);
    const run = await ended(tower, runId);
    expect(run).toMatchObject({
      state: "succeeded",
      result: { settled: "eu" },
      attempt: 1,
      key: "eu",
      source: "enqueue",
    });
    expect(seen).toEqual([1, null, "eu", "eu", new Date("2026-01-01")]);
    const { store } = await tower.open();
    const lines = await until("the log line", async () => {
      const found = await store.runs.logs(runId, 10);
      return found.length > 0 && found;
    });
    expect(lines).toMatchObject([{ level: "info", message: "settling", fields: { ledger: "eu" }, attempt: 1 }]);
  });

  test("a payload that is invalid, too large or not JSON is refused before it is stored", async () => {
    const tower = make();
    const task = tower.task("typed", { payload: z.object({ n: z.number() }) }, () => undefined);
    const free = tower.task<unknown>("free", {}, () => undefined);
    await expect(task.enqueue({ n: "one" } as never)).rejects.toMatchObject({
      code: "PAYLOAD_INVALID",
      message: /n: /,
    });
    await expect(free.enqueue("x".repeat(256 * 1024))).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    await expect(free.enqueue("x".repeat(256 * 1024 - 2))).resolves.toMatchObject({ created: true });
    await expect(free.enqueue("é".repeat(128 * 1024))).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    for (const bad of [loop, 1n, () => 1, "a\0b", "\ud800"]) {
      await expect(free.enqueue(bad)).rejects.toMatchObject({ code: "PAYLOAD_NOT_JSON" });
    }
    await expect(free.enqueue("\\u0000 is only text, and \\ud800 too")).resolves.toMatchObject({ created: true });
  });

  test("a process does not start with a schedule whose slots have an invalid payload", async () => {
    const tower = make();
    tower.task("typed", { schedule: every("1h"), payload: z.object({ n: z.number() }) }, () => undefined);
    await expect(tower.start()).rejects.toMatchObject({ code: "PAYLOAD_INVALID", hint: /slotPayload/ });
  });

  test("invalid definitions and options are refused with a code", async () => {
    const tower = make();
    tower.task("one", {}, () => undefined);
    expect(() => tower.task("one", {}, () => undefined)).toThrow(expect.objectContaining({ code: "TASK_DUPLICATE" }));
    expect(() => tower.task("a task", {}, () => undefined)).toThrow(expect.objectContaining({ code: "TASK_INVALID" }));
    expect(() => tower.task("two", { retries: 3 } as never, () => undefined)).toThrow(/there is no option "retries"/);
    expect(() => tower.task("two", { timeout: "soon" }, () => undefined)).toThrow(
      expect.objectContaining({ code: "DURATION_INVALID" }),
    );
    expect(() => carillon({ store: "mysql://x" })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    expect(() => carillon({ stoer: url } as never)).toThrow(/there is no option "stoer"/);
    await expect(tower.enqueue("nobody")).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    await expect(tower.pause("nobody")).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    await expect(tower.cancel(123_456)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
    await expect(tower.enqueue("one", null, { in: "1s", at: 5 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(tower.enqueue("one", null, { key: "" })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(tower.enqueue("one", null, { priority: 10 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });

  test("a key makes one run while that run is unfinished, and a new run afterwards", async () => {
    const tower = make();
    const task = tower.task<number>("keyed", {}, () => undefined);
    const both = [await task.enqueue(1, { key: "k", in: "300ms" }), await task.enqueue(2, { key: "k" })] as const;
    expect(both[1]).toEqual({ runId: both[0].runId, created: false });
    await tower.start();
    expect(await ended(tower, both[0].runId)).toMatchObject({ payload: 1 });
    expect(await task.enqueue(3, { key: "k" })).toMatchObject({ created: true });
  });

  test("enqueue joins the caller's transaction: the run exists after commit, never after rollback", async () => {
    const tower = make();
    const seen: number[] = [];
    const task = tower.task<number>("joined", {}, (_run, n) => void seen.push(n));
    await tower.start();
    await database.query("begin");
    const lost = await task.enqueue(1, { tx: database });
    await database.query("rollback");
    await database.query("begin");
    const kept = await task.enqueue(2, { tx: database });
    // Run 3 is enqueued outside the transaction, after run 2. If run 2 had been visible before the commit, it would have started by
    // the time run 3 has ended.
    await ended(tower, (await task.enqueue(3)).runId);
    expect(seen).toEqual([3]);
    await database.query("commit");
    await ended(tower, kept.runId);
    expect(seen).toEqual([3, 2]);
    const { store } = await tower.open();
    await expect(store.runs.find(lost.runId)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
  });

  test("run.complete joins the handler's transaction, for exactly-once effects there", async () => {
    const tower = make();
    await database.query(`create schema if not exists ${schema}`);
    await database.query(`create table ${schema}.ledger (run bigint, attempt int)`);
    const pool = new pg.Pool({ connectionString: url });
    const task = tower.task("exact", { retry: { attempts: 3, delay: "10ms" } }, async (run) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        await expect(run.complete(client), "outside of one").rejects.toMatchObject({ code: "OPTION_INVALID" });
        await client.query("begin");
        await client.query(`insert into ${schema}.ledger values ($1, $2)`, [run.id, run.attempt]);
        await expect(run.complete(pool, "outside of it")).rejects.toMatchObject({ code: "OPTION_INVALID" });
        await run.complete(client, { by: "transaction" });
        // The first attempt fails after it completed the run, so the completion is rolled back with its transaction.
        if (run.attempt === 1) throw new Error("power cut");
        await client.query("commit");
      } finally {
        await client.end();
      }
    });
    await tower.start();
    const { runId } = await task.enqueue(undefined);
    expect(await ended(tower, runId)).toMatchObject({ state: "succeeded", attempt: 2, result: { by: "transaction" } });
    const { rows } = await database.query(`select attempt from ${schema}.ledger`);
    expect(rows).toEqual([{ attempt: 2 }]);
    await pool.end();
    expect(complaints(log.lines)).toEqual([]);
  });

  test("failures are retried with back-off, then the run fails with the thrown error", async () => {
    const tower = make();
    const at: number[] = [];
    const task = tower.task(
      "failing",
      { retry: { attempts: 3, delay: "100ms", backoff: "exponential", jitter: 0 } },
      () => {
        at.push(performance.now());
        throw Object.assign(new Error("no"), { code: "E_NO" });
      },
    );
    await tower.start();
    const run = await ended(tower, (await task.enqueue(undefined)).runId);
    expect(run).toMatchObject({ state: "failed", attempt: 3, error: { code: "E_NO", message: "no" } });
    const { store } = await tower.open();
    const attempts = await store.runs.attempts(run.runId);
    expect(attempts.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, "failed"],
      [2, "failed"],
    ]);
    expect(at.length).toBe(3);
    expect((at[1] as number) - (at[0] as number)).toBeGreaterThanOrEqual(99);
    expect((at[2] as number) - (at[1] as number)).toBeGreaterThanOrEqual(199);
  });

  test("a thrown undefined, a rejected thenable and an unusual result are all recorded", async () => {
    const tower = make();
    const nothing = tower.task("nothing", {}, () => Promise.reject(undefined));
    const rejecting = (_good: unknown, bad: (error: unknown) => void) => bad("text");
    // biome-ignore lint/suspicious/noThenProperty: a thenable that is no Promise is what is tested
    const thenable = tower.task("thenable", {}, () => ({ then: rejecting }));
    const unusual = tower.task("unusual", {}, () => 10n);
    await tower.start();
    expect(await ended(tower, (await nothing.enqueue(undefined)).runId)).toMatchObject({ state: "failed" });
    expect(await ended(tower, (await thenable.enqueue(undefined)).runId)).toMatchObject({
      state: "failed",
      error: { message: "text" },
    });
    expect(await ended(tower, (await unusual.enqueue(undefined)).runId)).toMatchObject({
      state: "succeeded",
      result: null,
    });
  });

  test("a timeout aborts the signal and fails the attempt", async () => {
    const tower = make();
    let reason: unknown;
    const task = tower.task("slow", { timeout: "100ms" }, async (run) => {
      await new Promise((resolve) => run.signal.addEventListener("abort", resolve));
      reason = run.signal.reason;
      throw new Error("stopped half-way");
    });
    await tower.start();
    const run = await ended(tower, (await task.enqueue(undefined)).runId);
    expect(run).toMatchObject({ state: "failed", error: { code: "TIMEOUT", thrown: "stopped half-way" } });
    expect(reason).toMatchObject({ code: "TIMEOUT" });
  });

  test("cancel: a waiting run never starts, a running one is aborted and ends cancelled, an ended one is refused", async () => {
    const tower = make({ claimAhead: "60s" });
    const started: number[] = [];
    const task = tower.task("long", {}, async (run) => {
      started.push(run.id);
      await new Promise((_resolve, reject) => run.signal.addEventListener("abort", () => reject(run.signal.reason)));
    });
    const after = tower.task("after", {}, () => undefined);
    await tower.start();
    const far = await task.enqueue(undefined, { in: "1h" });
    const near = await task.enqueue(undefined, { in: "3s" });
    const later = await after.enqueue(undefined, { in: "3100ms" });
    const now = await task.enqueue(undefined);
    await until("the run to start", () => started.length === 1);
    const { store } = await tower.open();
    await until("the claim ahead", async () => (await store.runs.find(near.runId)).state === "claimed");
    expect(await tower.cancel(far.runId, "not needed")).toBe("cancelled");
    expect(await tower.cancel(near.runId, "not needed")).toBe("cancelled");
    expect(await tower.cancel(now.runId, "enough")).toBe("stopping");
    expect(await ended(tower, far.runId)).toMatchObject({ state: "cancelled", startedMs: null });
    expect(await ended(tower, near.runId)).toMatchObject({ state: "cancelled", startedMs: null });
    expect(await ended(tower, now.runId)).toMatchObject({ state: "cancelled", error: { message: "enough" } });
    await expect(tower.cancel(now.runId)).rejects.toMatchObject({ code: "RUN_STATE" });
    // This run is due after the cancelled ones, so once it has ended, they would have started too.
    await ended(tower, later.runId);
    expect(started).toEqual([now.runId]);
  });

  test("pause resolves when no further run can start, and resume continues with the next slot", async () => {
    const tower = make();
    const slots: number[] = [];
    const task = tower.task(
      "ticking",
      { schedule: every("200ms") },
      (run) => void slots.push(run.slot?.getTime() as number),
    );
    let others = 0;
    tower.task("beside", { schedule: every("200ms") }, () => void others++);
    await tower.start();
    await until("three slots", () => slots.length >= 3);
    for (let round = 0; round < 5; round++) {
      await task.pause("a look");
      const seen = slots.length;
      // The other task has the same schedule and is not paused. Its third slot is due after two slots that the paused task must leave out.
      const goal = others + 3;
      await until("three slots of the task that is not paused", () => others >= goal);
      expect(slots.length, `round ${round}`).toBe(seen);
      await task.resume();
      await until("a slot after the pause", () => slots.length > seen);
    }
    expect(new Set(slots).size).toBe(slots.length);
  });

  test("priorities: of the due runs, those of a higher priority are claimed first", async () => {
    const order: string[] = [];
    const first = make({ scheduler: false, worker: false });
    const define = (tower: Carillon) => tower.task<string>("ordered", {}, (_run, name) => void order.push(name));
    const task = define(first);
    for (const [name, priority] of [
      ["low", 1],
      ["normal", undefined],
      ["high", 9],
    ] as const)
      await task.enqueue(name, { priority });
    const tower = make({ concurrency: 1 });
    define(tower);
    await tower.start();
    await until("three runs", () => order.length === 3);
    expect(order).toEqual(["high", "normal", "low"]);
  });

  test("a worker sends a heartbeat at once on request", async () => {
    const tower = make({ scheduler: false, name: "asked", sessionTimeout: "60s" });
    await tower.start();
    const { sessions } = (await tower.open()).store;
    const me = async () => (await sessions.members()).members.find(({ node }) => node === "asked");
    // Without the request, the worker would send a heartbeat every 5 s, and 60 of them would exceed the time limit of the test.
    for (let asked = 0; asked < 60; asked++) {
      const { sessionId = 0, beat = 0 } = (await me()) ?? {};
      await sessions.prompt(sessionId);
      await until("it beat", async () => ((await me())?.beat ?? 0) > beat);
    }
  });

  test("stop starts runs due in a moment, which another process could not claim in time, and releases the others", async () => {
    const tower = make({ claimAhead: "60s" });
    const task = tower.task<number>("work", {}, async (run) => run.fence);
    await tower.start();
    const [soon, later] = [await task.enqueue(1, { in: "1s" }), await task.enqueue(2, { in: "50s" })];
    const due = performance.now() + 1_000;
    const { store } = await tower.open();
    const stateOf = async ({ runId }: { runId: number }) => (await store.runs.find(runId)).state;
    await until("both to be claimed", async () => (await stateOf(later)) === "claimed");
    await until("the one to be nearly due", () => performance.now() > due - 300);
    await tower.stop();
    const { store: other } = await make().open();
    expect(await other.runs.find(soon.runId)).toMatchObject({ state: "succeeded", attempt: 1 });
    expect(await other.runs.find(later.runId)).toMatchObject({ state: "ready", attempt: 0 });
  });

  test("stop drains: running runs end, runs claimed ahead are released, and none is lost", async () => {
    const tower = make({ claimAhead: "60s" });
    const begun = new Set<number>();
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const define = (one: Carillon) =>
      one.task<number>("work", {}, async (run) => {
        begun.add(run.id);
        await released;
        return run.fence;
      });
    const task = define(tower);
    await tower.start();
    const running = await task.enqueue(1);
    // The run is due after the stop has begun, even on a busy machine.
    const ahead = await task.enqueue(2, { in: "3s" });
    const { store } = await tower.open();
    // Waits until run 1 has started, because the stop would give back a run that was only claimed.
    await until(
      "one that runs and one claimed ahead",
      async () => begun.has(running.runId) && (await store.runs.find(ahead.runId)).state === "claimed",
    );
    const next = make();
    define(next);
    const { store: other } = await next.open();
    const stopped = tower.stop();
    await until("the one claimed ahead to go back", async () => (await other.runs.find(ahead.runId)).state === "ready");
    expect(await other.runs.find(running.runId)).toMatchObject({ state: "claimed" });
    await next.start();
    release();
    await stopped;
    expect(await other.runs.find(running.runId)).toMatchObject({ state: "succeeded", attempt: 1 });
    expect(await ended(next, ahead.runId)).toMatchObject({ state: "succeeded", attempt: 1 });
    const { members } = await other.sessions.members();
    expect(members.map(({ node }) => node)).toEqual([next.node]);
    expect(await until("the hand-over", () => next.term)).toBe(2);
    await expect(tower.enqueue("work")).rejects.toMatchObject({ code: "STOPPED" });
  });

  test("a second live node with the same name is refused; a dead node's name can be taken", async () => {
    const first = make({ name: "atlas" });
    await first.start();
    const second = make({ name: "atlas" });
    await expect(second.start()).rejects.toMatchObject({
      code: "NODE_NAME_TAKEN",
      message: new RegExp(`pid ${process.pid}`),
    });
    await first.stop();
    const third = make({ name: "atlas" });
    await expect(third.start()).resolves.toBe(third);
  });

  test("a run without a handler in this process waits for a worker that has one", async () => {
    const first = make();
    const task = first.task("elsewhere", {}, () => "here");
    const { runId } = await task.enqueue(undefined);
    const other = make();
    const another = other.task("another", {}, () => undefined);
    await other.start();
    const { store } = await other.open();
    // This run is due later and in the same group, so once it has ended, the other run could have been claimed before it.
    await ended(other, (await another.enqueue(undefined)).runId);
    // A worker without the handler may claim the run for a moment, and gives it back at once.
    await expect.poll(() => store.runs.find(runId)).toMatchObject({ state: "ready", attempt: 0 });
    await first.start();
    expect(await ended(first, runId)).toMatchObject({ state: "succeeded", result: "here", attempt: 1 });
  });

  test("a stale version is refused with both versions", async () => {
    const tower = make();
    const task = tower.task("edited", {}, () => undefined);
    await tower.start();
    const { store } = await tower.open();
    const { definition, version } = await store.tasks.byName(task.name);
    await tower.save({ ...definition, description: "first" }, { expectedVersion: version });
    await expect(
      tower.save({ ...definition, description: "second" }, { expectedVersion: version }),
    ).rejects.toMatchObject({
      code: "TASK_STALE",
      message: /version 2.*version 1/,
    });
  });

  test("misfire: after a period without any node, slots end by their policy and gaps are ranges", async () => {
    // The misfire time is longer than a busy machine delays the planner after its return, so that there is exactly one gap.
    const misfireMs = 5_000;
    const define = (tower: Carillon) => {
      const misfire = { after: misfireMs } as const;
      tower.task("once", { schedule: every("500ms"), misfire: { policy: "fire_once", ...misfire } }, () => undefined);
      tower.task("none", { schedule: every("500ms"), misfire: { policy: "skip", ...misfire } }, () => undefined);
      tower.task(
        "all",
        { schedule: every("500ms"), misfire: { policy: "all", cap: 4, perSecond: 10, ...misfire } },
        () => undefined,
      );
    };
    const names = ["once", "none", "all"];
    const lastSlot = async (name: string, outcome?: number) => {
      const { rows } = await database.query(
        `select max(l.slot_ms)::float8 as last from ${schema}.slot l join ${schema}.task t on t.id = l.task_id
         left join ${schema}.run_history h on h.id = l.run_id where t.name = $1 and ($2::int is null or h.outcome = $2)`,
        [name, outcome ?? null],
      );
      return Number(rows[0].last);
    };
    const first = make({ sessionTimeout: "1500ms", horizon: "3s" });
    define(first);
    await first.start();
    for (const name of names) await until(`a run of ${name}`, () => lastSlot(name, 0));
    await first.stop();
    const planned = Math.max(...(await Promise.all(names.map((name) => lastSlot(name)))));
    // Waits until more unplanned slots are later than the misfire time than the cap allows to run.
    await until("slots to come due that are not planned", () => Date.now() > planned + misfireMs + 3_000);
    const back = make({ sessionTimeout: "1500ms", horizon: "3s" });
    define(back);
    await back.start();
    const { store, nowMs } = await back.open();
    const backMs = nowMs();
    for (const name of names) await until(`a run of ${name} on time`, async () => (await lastSlot(name, 0)) > backMs);
    const now = nowMs();
    for (const name of names) {
      const { taskId } = await store.tasks.byName(name);
      const { slots, ranges } = await store.history.slots(taskId, 0, now, 1_000);
      const times = new Set(slots.map(({ slotMs }) => slotMs));
      expect(ranges, name).toHaveLength(1);
      const [gap] = ranges as [(typeof ranges)[number]];
      expect(gap, name).toMatchObject({ outcome: "missed", reason: expect.stringContaining("misfire") });
      for (let slot = gap.fromMs; slot <= gap.toMs; slot += 500) expect(times.has(slot), name).toBe(false);
      expect(gap.slots, name).toBe((gap.toMs - gap.fromMs) / 500 + 1);
      // Every half second from the first slot on must be in the ledger or in the gap.
      const first = Math.min(...times);
      for (let slot = first; slot <= now; slot += 500) {
        expect(times.has(slot) || (slot >= gap.fromMs && slot <= gap.toMs), `${name} ${slot}`).toBe(true);
      }
      const [counters] = [...(await store.tasks.counters([taskId])).values()];
      const givenUp = slots.filter(({ outcome }) => outcome === "missed").length;
      expect(counters?.missed, name).toBe((gap.slots as number) + givenUp);
    }
  });
});
