/** Tests the options for keys over time: `uniqueFor` and `maxWait`, and how they make debouncing and throttling with other options. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Carillon, taskType } from "../../src/index.ts";
import { ApiStage } from "../support/api-stage.ts";
import { ownSchema } from "../support/own-schema.ts";
import { StoreProxy } from "../support/proxy.ts";
import { everyPostgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

const wait = { timeout: "60s" } as const;
const once = { key: "k", uniqueFor: "1h" } as const;
const hourMs = 3_600_000;

describe.each(everyPostgres())("a key with a time window, on $title", ({ url }) => {
  const { schema, database, make } = ownSchema(url, "over", { drain: 0 });
  const live = async () =>
    (await database.query(`select id::int, payload, key, due_ms::float8 as due, state from ${schema}.run order by id`))
      .rows as { id: number; payload: unknown; key: string; due: number; state: number }[];
  const known = async () =>
    (await database.query(`select key, run_id::int as run from ${schema}.known_key order by key`)).rows;
  const pass = () => database.query(`update ${schema}.known_key set until_ms = until_ms - ${hourMs}`);
  /** Starts a process that defines the task and enqueues runs, but has no worker. */
  async function producer(): Promise<Carillon> {
    const tower = make({ worker: false });
    tower.task("a", {}, () => undefined);
    await tower.start();
    return tower;
  }

  test("a run holds its key for that time, even after it has ended; enqueues without the option ignore this", async () => {
    const type = taskType<number>("a");
    const tower = make();
    tower.task(type, {}, (_run, payload) => payload);
    await tower.start();
    const first = await tower.enqueue("a", 1, once);
    expect(first.created).toBe(true);
    expect(await first.result(wait)).toBe(1);
    const producing = make({ worker: false, scheduler: false, name: "producer" });
    const second = await producing.producer(type).enqueue(2, once);
    expect(second).toMatchObject({ runId: first.runId, created: false });
    expect(await second.result(wait)).toBe(1);
    const plain = await tower.enqueue("a", 3, { key: "k" });
    expect(plain.created).toBe(true);
    expect(await plain.result(wait)).toBe(3);
    expect(await tower.enqueue("a", 4, once)).toMatchObject({ runId: first.runId, created: false });
    expect(await tower.enqueue("a", 5, { ...once, key: "other" })).toMatchObject({ created: true });
    await pass();
    const next = await tower.enqueue("a", 6, once);
    expect(next.created).toBe(true);
    expect(await tower.enqueue("a", 7, once)).toMatchObject({ runId: next.runId, created: false });
  });

  test("an unfinished run with the key holds it for that time from then on", async () => {
    const tower = await producer();
    const first = await tower.enqueue("a", 1, { key: "k", in: "1h" });
    expect(await tower.enqueue("a", 2, once)).toMatchObject({ runId: first.runId, created: false });
    await first.cancel();
    expect(await tower.enqueue("a", 3, once)).toMatchObject({ runId: first.runId, created: false });
    expect(await live()).toEqual([]);
  });

  test("of many concurrent enqueues, from processes, lists and transactions, one makes the run", async () => {
    const towers = [await producer(), await producer()] as const;
    const clients = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const client = new pg.Client({ connectionString: url });
        await client.connect();
        return client;
      }),
    );
    try {
      const inOwn = clients.map(async (tx, n) => {
        await tx.query("begin");
        const handle = await towers[0].enqueue("a", n, { ...once, tx });
        await tx.query("commit");
        return handle;
      });
      const alone = Array.from({ length: 40 }, (_, n) => (towers[n % 2] as Carillon).enqueue("a", n, once));
      const many = towers[1].enqueueMany("a", [1, 2, 3] as never[], () => once);
      const handles = [...(await Promise.all([...inOwn, ...alone])), ...(await many)];
      expect(handles).toHaveLength(47);
      expect(handles.filter(({ created }) => created)).toHaveLength(1);
      expect(new Set(handles.map(({ runId }) => runId)).size).toBe(1);
      expect(await live()).toHaveLength(1);
    } finally {
      await Promise.all(clients.map((client) => client.end()));
    }
  });

  test("a transaction that is rolled back leaves neither run nor key", async () => {
    const tower = await producer();
    await database.query("begin");
    const gone = await tower.enqueue("a", 1, { ...once, tx: database });
    expect(await tower.enqueue("a", 2, { ...once, tx: database })).toMatchObject({ runId: gone.runId, created: false });
    const waits = tower.enqueue("a", 3, once);
    await database.query("rollback");
    const made = await waits;
    expect(made).toMatchObject({ created: true });
    expect(made.runId).not.toBe(gone.runId);
    expect(await live()).toMatchObject([{ id: made.runId, payload: 3 }]);
    expect(await known()).toEqual([{ key: "k", run: made.runId }]);
  });

  test("in repeatable read, the second of two enqueues is refused, and its caller restarts the transaction", async () => {
    const tower = await producer();
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    try {
      await other.query("begin isolation level repeatable read");
      await other.query(`select count(*) from ${schema}.run`);
      const first = await tower.enqueue("a", 1, once);
      await expect(tower.enqueue("a", 2, { ...once, tx: other })).rejects.toMatchObject({ code: "STORE_CONFLICT" });
      await other.query("rollback");
      expect(await tower.enqueue("a", 3, once)).toMatchObject({ runId: first.runId, created: false });
    } finally {
      await other.end();
    }
  });

  test("a lost reply makes one run, which is reported to its caller as created", async () => {
    const proxy = await StoreProxy.before(url);
    try {
      await producer();
      const tower = make({ worker: false, scheduler: false, store: proxy.url });
      await tower.enqueue("a", 0, { in: "1h" });
      proxy.swallowCommit();
      const handle = await tower.enqueue("a", 1, once);
      expect(proxy.swallowed).toBe(1);
      expect(handle.created).toBe(true);
      expect((await live()).filter(({ key }) => key === "k")).toMatchObject([{ id: handle.runId }]);
    } finally {
      proxy.heal();
      await proxy.close();
    }
  });

  test("the leader deletes expired keys; enqueues without the option leave none", async () => {
    const tower = await producer();
    for (const key of ["k", "l"]) await tower.enqueue("a", 1, { ...once, key });
    await tower.enqueue("a", 1, { key: "m" });
    const { store } = await tower.open();
    await store.runs.forgetKeys(Date.now());
    expect(await known()).toMatchObject([{ key: "k" }, { key: "l" }]);
    await store.runs.forgetKeys(Date.now() + 2 * hourMs);
    expect(await known()).toEqual([]);
  });

  test.each(["replace", "again"] as const)(
    "with maxWait, runs that replace each other wait no longer than that: %s",
    async (how) => {
      const tower = await producer();
      const later = { key: "k", in: "2h", ifKeyTaken: how } as const;
      const first = await tower.enqueue("a", 1, { ...later, maxWait: "1h" });
      const [{ due = 0 } = {}] = await live();
      expect((await first.status()).createdMs).toBe(due - hourMs);
      const second = await tower.enqueue("a", 2, { ...later, maxWait: "1h" });
      expect(second.replaced).toBe(first.runId);
      expect(await live()).toMatchObject([{ payload: 2, due }]);
      await tower.enqueue("a", 3, { ...later, maxWait: "90m" });
      expect(await live()).toMatchObject([{ payload: 3, due: due + hourMs / 2 }]);
      await tower.enqueue("a", 4, { key: "k", in: "1s", ifKeyTaken: how, maxWait: "1h" });
      const [soon] = await live();
      expect(soon?.due).toBeLessThan(due);
    },
  );

  test("maxWait of the run after a running one counts from the first enqueue during that run", async () => {
    const tower = make();
    const ends: (() => void)[] = [];
    tower.task("a", {}, () => new Promise<void>((resolve) => void ends.push(resolve)));
    await tower.start();
    const first = await tower.enqueue("a", 1, { key: "k" });
    await until("it has begun", async () => ends.length === 1);
    const later = { key: "k", in: "2h", ifKeyTaken: "again", maxWait: "1h" } as const;
    const parked = async () =>
      (await database.query(`select again->>'dueMs' as due, again->'payload' as payload from ${schema}.run`)).rows[0];
    expect(await tower.enqueue("a", 2, later)).toMatchObject({ runId: first.runId, again: true });
    const { due } = await parked();
    await tower.enqueue("a", 3, later);
    expect(await parked()).toEqual({ due, payload: 3 });
    ends[0]?.();
    await first.result(wait);
    expect(await live()).toMatchObject([{ payload: 3, due: Number(due) }]);
    await tower.enqueue("a", 4, later);
    expect(await live()).toMatchObject([{ payload: 4, due: Number(due) }]);
  });

  test("throttle: rate by key with ifKeyTaken starts one run at once, and merges later enqueues into one more", async () => {
    const tower = make();
    const seen: unknown[] = [];
    tower.task("a", { rate: { limit: 1, per: "1h", key: true } }, (_run, payload) => void seen.push(payload));
    await tower.start();
    const call = (n: number) => tower.enqueue("a", n, { key: "k", ifKeyTaken: "again" });
    await (await call(1)).result(wait);
    const handles = [await call(2), await call(3), await call(4)];
    expect(handles.map(({ created }) => created)).toEqual([true, true, true]);
    expect(handles.map(({ replaced }) => replaced)).toEqual([undefined, handles[0]?.runId, handles[1]?.runId]);
    await (await tower.enqueue("a", 5, { key: "another" })).result(wait);
    expect(seen).toEqual([1, 5]);
    expect(await live()).toMatchObject([{ id: handles[2]?.runId, payload: 4 }]);
  });

  test.each([
    [{ uniqueFor: "1h" }, "OPTION_INVALID", "uniqueFor"],
    [{ key: "k", uniqueFor: "soon" }, "DURATION_INVALID", ""],
    [{ key: "k", uniqueFor: "1h", ifKeyTaken: "again" }, "OPTION_INVALID", "uniqueFor"],
    [{ key: "k", maxWait: "1h" }, "OPTION_INVALID", "maxWait"],
    [{ key: "k", maxWait: "1h", ifKeyTaken: "keep" }, "OPTION_INVALID", "maxWait"],
  ])("%j is refused: %s", async (options, code, path) => {
    const tower = make({ worker: false });
    tower.task("a", {}, () => undefined);
    await expect(tower.enqueue("a", 1, options as never)).rejects.toMatchObject({ code, path });
    await expect(tower.enqueueMany("a", [1] as never[], options as never)).rejects.toMatchObject({ code });
  });
});

describe("a key with a time window, over the API", () => {
  const stage = new ApiStage();
  beforeAll(async () => {
    await stage.open();
    await stage.task("work", { group: "nobody" });
  });
  afterAll(() => stage.close());

  test("takes the same options as in code, and returns the run that holds the key", async () => {
    const api = stage.client("operator");
    const asked = { task: "work", key: "k", uniqueFor: "1h" } as const;
    const first = await api.runTask(asked);
    expect(first).toEqual({ run: expect.any(Number), created: true });
    await api.cancelRun({ run: first.run });
    expect(await api.runTask(asked)).toEqual({ run: first.run, created: false });
    await expect(api.runTask({ task: "work", uniqueFor: "1h" })).rejects.toMatchObject({
      code: "OPTION_INVALID",
      path: "uniqueFor",
    });
    const later = { task: "work", key: "later", in: "2h", ifKeyTaken: "replace", maxWait: "1h" } as const;
    const due = async ({ run }: { run: number }) => (await api.getRun({ run })).due;
    const bounded = await due(await api.runTask(later));
    const next = await api.runTask(later);
    expect(next.replaced).toEqual(expect.any(Number));
    expect(await due(next)).toBe(bounded);
  });
});
