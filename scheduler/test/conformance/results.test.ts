import { describe, expect, test } from "vitest";
import type { Signal } from "../../src/cluster/signal-store.ts";
import type { Carillon, RunHandle } from "../../src/index.ts";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, settlement, succeededVerdict, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("results on $title", (server) => {
  const { url } = server;
  const { schema, database, make } = ownSchema(url, "results", { drain: "5s" });

  /** Starts a process that executes runs. @returns another process, which only enqueues */
  async function pair(define: (tower: Carillon) => void): Promise<Carillon> {
    const worker = make();
    define(worker);
    await worker.start();
    return make();
  }

  test("reach another process as JSON represents them; a second enqueue with the key gets the same result", async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const producer = await pair((tower) =>
      tower.task("sum", {}, async (run, numbers: number[]) => {
        run.log.info("adding", { of: numbers.length });
        await released;
        return { sum: numbers.reduce((a, b) => a + b, 0), at: new Date(0), none: undefined };
      }),
    );
    const first = await producer.enqueue("sum", [1, 2, 3], { key: "a" });
    const again = await producer.enqueue("sum", [9], { key: "a" });
    expect([again.runId, first.created, again.created]).toEqual([first.runId, true, false]);
    const both = Promise.all([first.result(), again.result()]);
    await until("it runs", async () => (await first.status()).startedMs !== null);
    release();
    expect(await both).toEqual(Array(2).fill({ sum: 6, at: "1970-01-01T00:00:00.000Z" }));
    expect(await first.result(), "of a run that is over").toMatchObject({ sum: 6 });
    expect(await producer.runs.result(first.runId)).toMatchObject({ sum: 6 });
    expect(await first.status()).toMatchObject({ state: "succeeded", result: { sum: 6 }, payload: [1, 2, 3] });
    await until("its log", async () => (await first.logs()).length === 1);
    expect(await first.logs()).toMatchObject([{ message: "adding", fields: { of: 3 } }]);
    await expect(first.cancel()).rejects.toMatchObject({ code: "RUN_STATE" });
    expect(JSON.stringify(first)).toBe(JSON.stringify({ runId: first.runId, created: true }));
  });

  test("of unsuccessful runs are errors that say how the run ended", async () => {
    const producer = await pair((tower) => {
      tower.task("broken", { retry: 2 }, () => {
        throw new RangeError("the ledger is closed");
      });
      tower.task("later", {}, () => "never");
    });
    const broken = await producer.enqueue("broken");
    await expect(broken.result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      message: `run ${broken.runId} of task broken failed: the ledger is closed`,
      cause: { message: "the ledger is closed" },
    });
    expect((await broken.status()).attempt).toBe(2);
    const later = await producer.enqueue("later", undefined, { in: "1h" });
    await expect(later.result({ timeout: 20 })).rejects.toMatchObject({ code: "RESULT_TIMEOUT" });
    await expect(later.result({ timeout: "soon" as never })).rejects.toMatchObject({ code: "DURATION_INVALID" });
    const given = new AbortController();
    const aborted = expect(later.result({ signal: given.signal })).rejects.toThrow("enough");
    given.abort(new Error("enough"));
    await aborted;
    await expect(later.result({ signal: given.signal })).rejects.toThrow("enough");
    const cancelled = expect(later.result()).rejects.toMatchObject({
      code: "RUN_CANCELLED",
      message: `run ${later.runId} of task later was cancelled: not needed`,
    });
    await until("it is waited for", async () => (await rows("select from $s.awaited")).length === 1);
    expect(await later.cancel("not needed")).toBe("cancelled");
    await cancelled;
    expect(await rows("select from $s.awaited"), "nobody waits any more").toEqual([]);
    await expect(producer.runs.result(later.runId + 9_999)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
    const retried = await producer.runs.retry(broken.runId);
    expect(retried).toMatchObject({ created: true });
    await expect(retried.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
  });

  test("of a run skipped because of another run of its task say so", async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const producer = await pair((tower) => tower.task("alone", { overlap: "skip" }, () => released));
    const first = await producer.enqueue("alone");
    await until("it runs", async () => (await first.status()).startedMs !== null);
    const second = await producer.enqueue("alone");
    await expect(second.result()).rejects.toMatchObject({ code: "RUN_SKIPPED" });
    release();
    expect(await first.result()).toBe(null);
  });

  test("of a task that does not keep successes end the wait with an error that says so", async () => {
    const producer = await pair((tower) => tower.task("light", { history: "failures" }, () => 1));
    const ahead = await producer.enqueue("light", undefined, { in: 300 });
    await expect(ahead.result()).rejects.toMatchObject({ code: "RESULT_UNKEPT" });
  });

  test("are awaited only until the process stops", async () => {
    const producer = await pair((tower) => tower.task("later", {}, () => 1));
    const later = await producer.enqueue("later", undefined, { in: "1h" });
    const told = expect(later.result()).rejects.toMatchObject({ code: "STOPPED" });
    await until("it is waited for", async () => (await rows("select from $s.awaited")).length === 1);
    await producer.stop();
    await told;
    await expect(later.result()).rejects.toMatchObject({ code: "STOPPED" });
  });

  test("of thousands of runs reach the caller that awaits each", async () => {
    const producer = await pair((tower) => tower.task("twice", {}, (_, n: number) => n * 2));
    const handles = await Promise.all(Array.from({ length: 2_500 }, (_, n) => producer.enqueue("twice", n)));
    const results = await Promise.all(handles.map((handle: RunHandle) => handle.result()));
    expect(results).toEqual(handles.map((_, n) => n * 2));
    expect(await rows("select from $s.awaited")).toEqual([]);
  });

  test("lists are returned page by page, by task, state and time", async () => {
    const producer = await pair((tower) => {
      tower.task("done", {}, () => 1);
      tower.task("later", {}, () => 1);
    });
    const done = await Promise.all([1, 2, 3].map(() => producer.enqueue("done")));
    for (const handle of done) await handle.result();
    const later: RunHandle[] = [];
    for (const hours of [1, 2]) later.push(await producer.enqueue("later", { hours }, { in: `${hours}h` }));
    const idsOf = (items: { runId: number }[]) => items.map(({ runId }) => runId);
    const first = await producer.runs.list({ limit: 3 });
    expect(idsOf(first.items).slice(0, 2)).toEqual(idsOf(later));
    expect(first.items[0]).not.toHaveProperty("payload");
    const second = await producer.runs.list({ limit: 3, cursor: first.next as string });
    expect([second.items.length, second.next]).toEqual([2, null]);
    expect(idsOf([...first.items, ...second.items]).sort()).toEqual(idsOf([...done, ...later]).sort());
    const all: { runId: number }[] = [];
    for await (const run of producer.runs.each({ task: "done", states: ["succeeded"] })) all.push(run);
    expect(idsOf(all).sort()).toEqual(idsOf(done).sort());
    expect(
      (await producer.runs.list({ until: new Date(Date.now() + 5_400_000), states: ["ready"] })).items,
    ).toMatchObject([{ runId: later[0]?.runId }]);
    await expect(producer.runs.list({ task: "dnoe" })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    await expect(producer.runs.list({ cursor: "x" })).rejects.toMatchObject({ code: "OPTION_INVALID", path: "cursor" });
    await expect(producer.runs.list({ until: "today" as never })).rejects.toMatchObject({ path: "until" });
    await expect(producer.runs.list({ tsak: "done" } as never)).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(producer.runs.list({ limit: 0 })).rejects.toMatchObject({ code: "OPTION_INVALID", path: "limit" });
  });

  async function rows(text: string): Promise<unknown[]> {
    return (await database.query(text.replaceAll("$s", schema))).rows;
  }
});

describe.each(everyPostgres())("run ends on $title", (server) => {
  test("are signalled to the callers that await them, and for no other run", async () => {
    const stage = await openStage(server);
    try {
      const { runs, claims, signals } = stage.store;
      const session = await stage.session("worker");
      const task = await stage.task("plain");
      const light = await stage.task("light", { history: "failures" });
      const linked = await stage.task("linked", { overlap: "queue" });
      const failing = await stage.task("failing");
      const heard: number[] = [];
      let isHeard = false;
      const given = new AbortController();
      void signals.listen((signal: Signal) => {
        if (signal.kind === "resync") isHeard = true;
        if (signal.kind === "ended") heard.push(...signal.runIds);
      }, given.signal);
      await until("signals are heard", () => isHeard);
      const each = [task, light, linked, failing];
      const awaited: number[] = [];
      for (const one of each) awaited.push(await stage.enqueue(one));
      const others: number[] = [];
      for (const one of [task, light, failing]) others.push(await stage.enqueue(one));
      const cancelled = await stage.enqueue(task, { dueMs: stage.nowMs + 9e6 });
      await runs.awaitEnds([...awaited, cancelled], stage.nowMs);
      expect(await runs.ends([...awaited, cancelled], stage.nowMs), "none is over").toEqual([]);
      const failed = { kind: "ended", outcome: "failed", result: null, error: '{"code":"X","message":"no"}' } as const;
      const claimed = await stage.claim(session, each);
      expect(claimed).toHaveLength(awaited.length + others.length);
      const settled = claimed.map((run) => ({
        ...settlement(run, run.taskId === failing.taskId ? failed : succeededVerdict, stage.nowMs),
        ...(run.taskId === light.taskId && { unkept: true }),
      }));
      await claims.settle(session, settled, stage.nowMs);
      await runs.cancel(cancelled, "not needed", stage.nowMs);
      await until("all are told of", () => heard.length >= awaited.length + 1);
      expect(heard.toSorted()).toEqual([...awaited, cancelled].toSorted());
      const [plain, unkept, queued, broken, gone] = (await runs.ends([...awaited, cancelled], stage.nowMs)).toSorted(
        (a, b) => a.runId - b.runId,
      );
      expect([plain, queued].map((end) => [end?.outcome, end?.kept])).toEqual(Array(2).fill(["succeeded", true]));
      expect(unkept).toMatchObject({ outcome: "succeeded", kept: false });
      expect(broken).toMatchObject({ outcome: "failed", error: { code: "X", message: "no" }, task: "failing" });
      expect(gone).toMatchObject({ outcome: "cancelled", error: { message: "not needed" } });
      expect(await stage.rows("select from $s.awaited")).toEqual([]);
      const [unknown] = await runs.ends([cancelled + 99_999], stage.nowMs);
      expect(unknown).toMatchObject({ outcome: null, kept: false });
      given.abort();
    } finally {
      await stage.close();
    }
  });
});
