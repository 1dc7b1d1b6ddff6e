import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Signal } from "../../src/cluster/signal-store.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("announcing enqueued runs to other processes, $title", (server) => {
  let stage: Stage;
  let task: TaskRecord;
  let here: Store;
  let heard: Signal[];
  let end: AbortController;
  let listening: Promise<void>;
  beforeEach(async () => {
    stage = await openStage(server);
    here = await stage.another();
    task = await stage.task("t");
    heard = [];
    end = new AbortController();
    listening = stage.store.signals.listen((signal) => heard.push(signal), end.signal);
    await until("it listens", () => heard.some(({ kind }) => kind === "resync"));
    heard.length = 0;
  });
  afterEach(async () => {
    end.abort();
    await listening;
    await stage.close();
  });

  const ready = () => heard.flatMap((signal) => (signal.kind === "ready" ? [signal.dueMs - stage.nowMs] : []));
  const enqueue = (dueIn: number, key: string | null = null) =>
    here.runs.enqueue([stage.write(task, { dueMs: stage.nowMs + dueIn, key })], stage.nowMs);
  /** Sends a signal and waits for it. Signals arrive in order, so all earlier signals have arrived by then. */
  const told = async () => {
    const before = heard.length;
    await stage.store.tasks.save({ ...task.definition, description: `${before}` }, null, change(stage.nowMs));
    await until("a later signal", () => heard.slice(before).some(({ kind }) => kind === "tasks"));
  };

  it("announces runs that are due soon with their due time, for every kind of enqueue", async () => {
    await enqueue(5);
    await until("the first", () => ready().length === 1);
    await enqueue(7, "a key");
    await until("the second", () => ready().length === 2);
    await here.runs.enqueue(
      [9, 8].map((dueIn) => stage.write(task, { dueMs: stage.nowMs + dueIn, priority: 3 })),
      stage.nowMs,
    );
    await until("the third", () => ready().length === 3);
    const routed = await stage.task("routed", { route: "least-loaded" });
    await here.runs.enqueue([stage.write(routed, { dueMs: stage.nowMs + 6 })], stage.nowMs);
    await until("the router", () => heard.some(({ kind }) => kind === "direct"));
    expect(ready()).toEqual([5, 7, 8]);
  });

  it("does not announce runs that are due tomorrow: the heartbeat reports them in time", async () => {
    await enqueue(86_400_000);
    await enqueue(1);
    await until("what is due now", () => ready().length > 0);
    await told();
    expect(ready()).toEqual([1]);
  });

  it("announces many single enqueues in a few signals, including the last enqueue", async () => {
    const before = await stage.one<{ at: number }>("select extract(epoch from clock_timestamp()) * 1000 as at");
    for (let n = 300; n > 0; n--) await enqueue(n);
    await until("the earliest", () => ready().includes(1));
    const after = await stage.one<{ at: number }>("select extract(epoch from clock_timestamp()) * 1000 as at");
    // The store sends at most one signal every 3 ms, after the first.
    expect(ready().length).toBeLessThanOrEqual(1 + (Number(after.at) - Number(before.at)) / 3 + 1);
  });

  it("announces runs of the caller's transaction after it commits, and none if it rolls back", async () => {
    const client = await stage.sql.connect();
    const enqueueIn = (dueIn: number) =>
      here.runs.enqueueIn(client, stage.write(task, { dueMs: stage.nowMs + dueIn }), stage.nowMs);
    await client.query("begin");
    await enqueueIn(1);
    await client.query("rollback");
    await client.query("begin");
    await enqueueIn(3);
    await enqueueIn(2);
    await told();
    expect(ready(), "it is open").toEqual([]);
    await client.query("commit");
    await until("it is committed", () => ready().length > 0);
    client.release();
    await told();
    expect(ready()).toEqual([2]);
  });

  it("announces them before the process closes its store", async () => {
    const store = await openPostgres({ url: server.url, schema: stage.schema });
    const client = await stage.sql.connect();
    await client.query("begin");
    await store.runs.enqueueIn(client, stage.write(task, { dueMs: stage.nowMs + 2 }), stage.nowMs);
    await client.query("commit");
    client.release();
    for (const dueIn of [3, 1])
      await store.runs.enqueue([stage.write(task, { dueMs: stage.nowMs + dueIn })], stage.nowMs);
    await store.close();
    await told();
    expect(Math.min(...ready())).toBe(1);
    expect(ready().length).toBeGreaterThan(1);
  });
});
