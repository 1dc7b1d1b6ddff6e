/** Tests the enqueueing of many runs at once, and of runs in the caller's own transaction. */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { every, taskType } from "../../src/index.ts";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";

describe.each(everyPostgres())("enqueuing on $title", ({ url }) => {
  const { schema, database, make } = ownSchema(url, "enqueue", { drain: "5s" });

  test("a list is enqueued in order, or not at all if one is invalid; a stream is read as fast as it is stored", async () => {
    const tower = make({ worker: false });
    const task = tower.task("many", { payload: z.object({ n: z.number() }) }, () => undefined);
    await tower.start();
    const list = Array.from({ length: 2_500 }, (_, n) => ({ n }));
    const handles = await task.enqueueMany(list, ({ n }) => ({ key: `k${n % 2_400}`, in: "1h" }));
    expect(handles.map(({ created }) => created)).toEqual(list.map((_, n) => n < 2_400));
    expect(handles[2_401]?.runId).toBe(handles[1]?.runId);
    expect((await handles[2_399]?.status())?.payload).toEqual({ n: 2_399 });
    await expect(task.enqueueMany([{ n: 1 }, { n: "two" as never }, { n: 3 }])).rejects.toMatchObject({
      code: "PAYLOAD_INVALID",
      path: expect.stringMatching(/^\[1\]/),
    });
    await expect(task.enqueueMany([{ n: 1 }], { piority: 1 } as never)).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
    let given = 0;
    async function* stream() {
      for (; given < 20_000; given++) yield { n: given };
    }
    const streamed = await tower.enqueueMany("many", stream() as never, { in: "2h" });
    expect(new Set(streamed.map(({ runId }) => runId)).size).toBe(20_000);
    expect(await task.enqueueMany([])).toEqual([]);
    await database.query("begin");
    await task.enqueueMany([{ n: 1 }, { n: 2 }], { tx: database, in: "3h" });
    await database.query("rollback");
    const all = await database.query(`select count(*)::int as n from ${schema}.run`);
    expect(all.rows).toEqual([{ n: 2_400 + 20_000 }]);
  });

  test("a producer validates payloads by the task's type, before and after another process defines the task", async () => {
    const sum = taskType("sum", { payload: z.object({ numbers: z.array(z.number()) }), result: z.number() });
    const producing = make({ worker: false, scheduler: false, name: "producer" });
    const producer = producing.producer(sum);
    expect(producing.producer(sum).name).toBe("sum");
    await expect(producer.enqueue({ numbers: [1] })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    await expect(producer.enqueue({ numbers: ["1"] as never })).rejects.toMatchObject({ code: "PAYLOAD_INVALID" });
    const duplicate = expect.objectContaining({ code: "TASK_DUPLICATE" });
    expect(() => producing.producer(taskType("sum"))).toThrow(duplicate);
    const working = make({ name: "worker" });
    working.task(sum, { schedule: every("1h"), slotPayload: { numbers: [] } }, (_, { numbers }) =>
      numbers.reduce((a, b) => a + b, 0),
    );
    expect(() => working.producer(sum)).toThrow(duplicate);
    await working.start();
    const handle = await producer.enqueue({ numbers: [1, 2, 3] }, { key: "a" });
    expect(await handle.result({ timeout: "60s" })).toBe(6);
    const many = await producer.enqueueMany([{ numbers: [4] }, { numbers: [5] }]);
    expect(await Promise.all(many.map((one) => one.result({ timeout: "60s" })))).toEqual([4, 5]);
    await expect(producer.enqueueMany([{ numbers: [1] }, { numbers: "2" as never }])).rejects.toMatchObject({
      code: "PAYLOAD_INVALID",
      path: expect.stringMatching(/^\[1\]/),
    });
    expect(await producing.runs.count({ task: "sum" })).toEqual({ runs: 3, more: false });
    expect(await producing.runs.count({ task: "sum", states: ["succeeded"] }, { most: 2 })).toEqual({
      runs: 2,
      more: true,
    });
    await expect(producing.runs.count({ since: null as never })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    const named = await producer.schedule("tenant-7", every("1h"), { payload: { numbers: [7] } });
    expect(named.changed).toBe(true);
  });

  test.each([
    [{ runTimeout: "soon" }, "DURATION_INVALID", "[1].runTimeout"],
    [{ retry: 0 }, "OPTION_INVALID", "[1].retry.attempts"],
    [{ in: "soon" }, "DURATION_INVALID", "[1]"],
    [{ expiresAt: 1 }, "OPTION_INVALID", "[1]"],
  ] as const)("no run of a list is made if the options of one are invalid: %j", async (wrong, code, path) => {
    const tower = make({ worker: false });
    const task = tower.task<number>("many", {}, () => undefined);
    await tower.start();
    const enqueued = task.enqueueMany([1, 2], (_, index) => (index === 1 ? (wrong as object) : {}));
    await expect(enqueued).rejects.toMatchObject({ code, path });
    expect(await tower.runs.count()).toEqual({ runs: 0, more: false });
  });

  test("a list waits for an unreachable store no longer than a single enqueue does", async () => {
    const away = make({ worker: false, store: "postgres://nobody@127.0.0.1:1/none" });
    const task = away.task("many", {}, () => undefined);
    await expect(task.enqueueMany([{ n: 1 }], { timeout: 200 })).rejects.toMatchObject({ code: "ENQUEUE_TIMEOUT" });
  });

  test("a client without a transaction, or of another database, is refused, and no run is made", async () => {
    const tower = make();
    const task = tower.task<number>("refused", {}, () => undefined);
    await tower.start();
    const outside = {
      code: "OPTION_INVALID",
      path: "tx",
      message: expect.stringContaining("no transaction was begun"),
    };
    await expect(task.enqueue(1, { tx: database })).rejects.toMatchObject(outside);
    await expect(task.schedule("a", every("1h"), { payload: 1, tx: database })).rejects.toMatchObject(outside);
    await expect(
      task.scheduleAll([{ name: "a", schedule: every("1h"), payload: 1 }], { tx: database }),
    ).rejects.toMatchObject(outside);
    await expect(task.unschedule("a", { tx: database })).rejects.toMatchObject(outside);
    const name = `refused_${randomBytes(4).toString("hex")}`;
    await database.query(`create database ${name}`);
    const other = new pg.Client({ connectionString: Object.assign(new URL(url), { pathname: `/${name}` }).href });
    await other.connect();
    try {
      const elsewhere = { ...outside, message: expect.stringContaining("another database") };
      await other.query("begin");
      await expect(task.enqueue(1, { tx: other })).rejects.toMatchObject(elsewhere);
      await other.query("rollback");
      // A second cluster whose schema has the same name, in another database.
      const apart = make({ store: Object.assign(new URL(url), { pathname: `/${name}` }).href });
      await apart.open();
      await other.query("begin");
      await expect(task.enqueue(1, { tx: other })).rejects.toMatchObject(elsewhere);
      await other.query("rollback");
      await apart.stop();
    } finally {
      await other.end();
      await database.query(`drop database ${name} with (force)`);
    }
    const rows = { query: async (text: string) => (await database.query(text)).rows } as never;
    await database.query("begin");
    await expect(task.enqueue(1, { tx: rows })).rejects.toMatchObject({
      ...outside,
      message: expect.stringContaining("as pg's does"),
    });
    await database.query("rollback");
    expect((await tower.runs.list()).items).toEqual([]);
  });
});
