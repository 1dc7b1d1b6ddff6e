/** Tests handlers that receive several runs at once, in a process with the store and in a worker without one. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type BatchRun, every } from "../../src/index.ts";
import { type RemoteWorker, worker } from "../../src/library/remote-worker.ts";
import { ownSchema } from "../support/own-schema.ts";
import { RemoteStage } from "../support/remote-stage.ts";
import { everyPostgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const wait = { timeout: "60s" } as const;
/** Options of a batch that begins only when it is full, because its wait is longer than any test. */
const full = (size: number) => ({ size, wait: "1m" }) as const;
const payloads = (runs: readonly BatchRun<unknown>[]) => runs.map(({ payload }) => payload as number).toSorted();

describe.each(everyPostgres())("batches on $title", ({ url }) => {
  const { schema, database, make } = ownSchema(url, "batches", { drain: 0 });
  const attempts = async () =>
    (await database.query(`select run_id::int as run, outcome from ${schema}.attempt order by run_id`)).rows;

  test("run when full or after their wait, each run with its own number and fence; the return value is every result", async () => {
    const tower = make();
    const calls: BatchRun<number>[][] = [];
    const task = tower.task<number>("a", { batch: full(5) }, async (runs) => {
      calls.push(runs);
      return { of: runs.length };
    });
    const soon = tower.task<number>("b", { batch: { size: 5, wait: "20ms" } }, (runs) => runs.length);
    await tower.start();
    const handles = await task.enqueueMany(Array.from({ length: 10 }, (_, n) => n));
    for (const handle of handles) expect(await handle.result(wait)).toEqual({ of: 5 });
    expect(calls.map((runs) => runs.length)).toEqual([5, 5]);
    const all = calls.flat();
    expect(new Set(all.map(({ id }) => id))).toEqual(new Set(handles.map(({ runId }) => runId)));
    expect(new Set(all.map(({ fence }) => fence)).size).toBe(10);
    expect(payloads(all)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await (await soon.enqueue(1)).result(wait)).toBe(1);
  });

  test("each run can end separately: early, with its own result or error, attempts, snooze and successor", async () => {
    const tower = make();
    const seen: unknown[] = [];
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const retry = { attempts: 2, delay: "1h", jitter: 0 } as const;
    const task = tower.task<string>("a", { batch: full(6), retry }, async (runs) => {
      const of = (name: string) => runs.find(({ payload }) => payload === name) as BatchRun<string>;
      of("good").succeed({ own: true });
      of("good").fail(new Error("it has ended already"));
      of("bad").fail(new Error("no"));
      of("soon").fail(of("soon").retryIn(1, { cause: new Error("later") }));
      of("off").succeed(of("off").snooze(1));
      of("on").succeed(of("on").continueAs("next"));
      await released;
      return "together";
    });
    const names = ["good", "bad", "soon", "off", "on", "rest"];
    tower.onRun(({ kind, runId }) => kind !== "started" && seen.push([kind, runId]));
    await tower.start();
    const handles = await task.enqueueMany(names);
    const [good, bad, soon, off, on, rest] = handles.map(({ runId }) => runId);
    expect(await handles[0]?.result(wait)).toEqual({ own: true });
    expect(await handles[4]?.result(wait)).toBeNull();
    await until("their attempts have ended", async () => (await attempts()).length === 3);
    expect(await attempts()).toEqual(
      [bad, soon, off].map((run) => ({ run, outcome: run === off ? "snoozed" : "failed" })),
    );
    expect((await handles[5]?.status())?.state).toBe("claimed");
    release();
    expect(await handles[5]?.result(wait)).toBe("together");
    expect(seen).toEqual(
      expect.arrayContaining([
        ["ended", good],
        ["retry", bad],
        ["retry", soon],
        ["snoozed", off],
        ["ended", on],
        ["ended", rest],
      ]),
    );
    expect(await tower.runs.count({ task: "a", source: "chain" })).toMatchObject({ runs: 1 });
  });

  test("a throw fails all unfinished runs, each by its own retries; a throw after the last end is only logged", async () => {
    const tower = make();
    const tries: number[] = [];
    const task = tower.task<number>("a", { batch: full(3) }, (runs) => {
      tries.push(...runs.map(({ attempt }) => attempt));
      runs.find(({ payload }) => payload === 1)?.succeed("one");
      throw new RangeError("all");
    });
    const late = tower.task<number>("late", { batch: full(1) }, (runs) => {
      runs[0]?.succeed("one");
      throw new Error("too late");
    });
    await tower.start();
    const [one, ...others] = await task.enqueueMany([1, 2, 3]);
    expect(await one?.result(wait)).toBe("one");
    for (const other of others)
      await expect(other.result(wait)).rejects.toMatchObject({ code: "RUN_FAILED", cause: { message: "all" } });
    expect(tries).toEqual([1, 1, 1]);
    const handle = await late.enqueue(1);
    expect(await handle.result(wait)).toBe("one");
    await until("the line is written", async () => (await handle.logs()).length > 0);
    expect(await handle.logs()).toMatchObject([
      {
        level: "error",
        message: expect.stringContaining("after its last run"),
        fields: { error: { message: "too late" } },
      },
    ]);
  });

  test("cancelling or timing out a single run aborts only that run's signal", async () => {
    const tower = make();
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const aborted: unknown[] = [];
    const task = tower.task<string>("a", { batch: full(3) }, async (runs) => {
      for (const run of runs)
        run.signal.addEventListener("abort", () => {
          aborted.push([run.payload, run.signal.reason.code]);
          run.fail(run.signal.reason);
        });
      await released;
    });
    await tower.start();
    const [kept, slow, gone] = await Promise.all([
      task.enqueue("kept"),
      task.enqueue("slow", { runTimeout: "20ms" }),
      task.enqueue("gone"),
    ]);
    await expect(slow?.result(wait)).rejects.toMatchObject({ cause: { code: "TIMEOUT" } });
    expect(await gone?.cancel("enough")).toBe("stopping");
    await expect(gone?.result(wait)).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    expect((await kept?.status())?.state).toBe("claimed");
    release();
    expect(await kept?.result(wait)).toBeNull();
    expect(aborted).toEqual([
      ["slow", "TIMEOUT"],
      ["gone", "CANCELLED"],
    ]);
  });

  test("a run cancelled before its batch begins leaves the batch; a stopped worker's run goes to another worker", async () => {
    const tower = make({ name: "first" });
    const calls: number[][] = [];
    const started = new Set<number>();
    tower.onRun(({ kind, runId }) => kind === "started" && started.add(runId));
    const options = { batch: full(2), history: "all" } as const;
    const task = tower.task<number>("a", options, (runs) => void calls.push(payloads(runs)));
    await tower.start();
    const gone = await task.enqueue(1);
    await until("it has joined", async () => started.has(gone.runId));
    expect(await gone.cancel()).toBe("stopping");
    await expect(gone.result(wait)).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    const handles = await task.enqueueMany([2, 3]);
    for (const handle of handles) await handle.result(wait);
    expect(calls).toEqual([[2, 3]]);
    const left = await task.enqueue(4);
    await until("it has joined", async () => started.has(left.runId));
    await tower.stop();
    const other = make({ name: "second" });
    other.task<number>("a", { ...options, batch: full(1) }, (runs) => runs[0]?.payload);
    await other.start();
    const { runId } = left;
    expect(await other.runs.result(runId, wait)).toBe(4);
  });

  test("use one slot per run: never more than the worker's concurrency or the task's own limit", async () => {
    const tower = make({ concurrency: 3 });
    const sizes: number[] = [];
    const held = tower.task<number>("a", { batch: full(100) }, (runs) => void sizes.push(runs.length));
    const serial = tower.task<number>("b", { batch: { size: 3, wait: 1 }, overlap: "queue" }, (runs) => runs.length);
    await tower.start();
    for (const handle of await held.enqueueMany([1, 2, 3, 4, 5, 6])) await handle.result(wait);
    expect(sizes).toEqual([3, 3]);
    for (const handle of await serial.enqueueMany([1, 2, 3])) expect(await handle.result(wait)).toBe(1);
  });

  test("complete in one transaction of the handler, and a run with an invalid payload fails separately", async () => {
    const tower = make();
    const task = tower.task(
      "a",
      { payload: z.object({ n: z.coerce.number() }), batch: full(2), schedule: every("1h"), slotPayload: { n: 0 } },
      async (runs) => {
        await database.query("begin");
        for (const run of runs) await run.complete(database, run.payload.n * 2);
        await database.query("commit");
      },
    );
    await tower.start();
    const { store } = await tower.open();
    const taskId = (await store.tasks.byName("a")).taskId;
    const wrong = { taskId, payload: '{"n":"x"}', dueMs: 1, key: null, priority: null, source: "enqueue" } as const;
    const [bad] = await store.runs.enqueue([wrong], Date.now());
    await expect(tower.runs.result(bad?.runId as number, wait)).rejects.toMatchObject({
      cause: { code: "PAYLOAD_INVALID" },
    });
    const handles = await task.enqueueMany([{ n: 1 }, { n: 2 }]);
    expect(await Promise.all(handles.map((handle) => handle.result(wait)))).toEqual([2, 4]);
  });

  test.each([
    [{ size: 0 }, "batch.size"],
    [{ size: 2, wait: "2m" }, "batch.wait"],
    [{ size: 2, wiat: "1s" }, "batch.wiat"],
    [5, "batch"],
  ])("%j is refused", (batch, path) => {
    const tower = make({ worker: false });
    const define = () => tower.task("a", { batch } as never, () => undefined);
    expect(define).toThrow(expect.objectContaining({ code: "TASK_INVALID", path }));
  });

  test("an isolated handler, a command, and a wait that is no duration are refused", () => {
    const tower = make({ worker: false });
    const invalid = expect.objectContaining({ code: "TASK_INVALID", path: "batch" });
    const batch = { size: 2 };
    expect(() => tower.task("a", { batch } as never, "handler.mjs")).toThrow(invalid);
    expect(() => tower.task("a", { batch, isolate: "thread" } as never, () => undefined)).toThrow(invalid);
    expect(() => tower.task("a", { batch, command: { argv: ["/bin/true"] } } as never)).toThrow(invalid);
    const define = () => tower.task("a", { batch: { size: 2, wait: "soon" } }, () => undefined);
    expect(define).toThrow(expect.objectContaining({ code: "DURATION_INVALID", path: "batch.wait" }));
  });
});

describe("batches of a worker without a store", () => {
  const stage = new RemoteStage();
  const workers: RemoteWorker[] = [];
  let key = "";
  beforeAll(async () => {
    await stage.serve();
    key = await stage.key("mine");
    await stage.task("work", { retry: 2 });
  });
  afterAll(async () => {
    await Promise.all(workers.map((one) => one.stop()));
    await stage.close();
  });

  test("take several runs, and end them separately or together", async () => {
    const one = worker({ server: stage.urlOf(), key, handleSignals: false, log: recordingLog().log, drain: "10s" });
    workers.push(one);
    const sizes: number[] = [];
    one.task<number>("work", { batch: full(3) }, async (runs) => {
      sizes.push(runs.length);
      runs.find(({ payload }) => payload === 2)?.fail(new RangeError("no"));
      return "done";
    });
    await one.start();
    const enqueued = await stage.server.enqueueMany("work", [1, 2, 3] as never[], { retry: 1 });
    const ended = async () => Promise.all(enqueued.map(({ runId }) => stage.store.runs.find(runId)));
    await until("all have ended", async () => (await ended()).every(({ endedMs }) => endedMs !== null));
    expect((await ended()).map(({ state, result }) => [state, result])).toEqual([
      ["succeeded", "done"],
      ["failed", null],
      ["succeeded", "done"],
    ]);
    expect(sizes).toEqual([3]);
  });

  test("a handler in a module is refused", () => {
    const one = worker({ server: stage.urlOf(), key, handleSignals: false, log: recordingLog().log });
    expect(() => one.task("work", { batch: { size: 2 } }, "handler.mjs" as never)).toThrow(
      expect.objectContaining({ code: "TASK_INVALID", path: "batch" }),
    );
  });
});
