import { describe, expect, test } from "vitest";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

describe.each(everyPostgres())("policies of a single run on $title", ({ url }) => {
  const { schema, database, make } = ownSchema(url, "overrides", { drain: 0 });
  const states = async () =>
    (await database.query(`select id::int, state from ${schema}.run order by id`)).rows as {
      id: number;
      state: number;
    }[];

  test("its attempts are its own, in a batch, with a key, in a transaction, or when enqueued again", async () => {
    const tower = make();
    const tries: number[] = [];
    tower.task("a", { retry: 1 }, (run) => {
      tries.push(run.attempt);
      throw new Error("no");
    });
    await tower.start();
    const retry = { attempts: 3, delay: "10ms", jitter: 0 } as const;
    const triesOf = async (handle: { result(options: { timeout: string }): Promise<unknown> }) => {
      await expect(handle.result({ timeout: "60s" })).rejects.toMatchObject({ code: "RUN_FAILED" });
      return tries.splice(0);
    };
    expect(await triesOf(await tower.enqueue("a", 1))).toEqual([1]);
    const once = await tower.enqueue("a", 1, { retry });
    expect(await triesOf(once)).toEqual([1, 2, 3]);
    expect((await once.status()).overrides).toMatchObject({ retry: { attempts: 3, delayMs: 10 } });
    expect(await triesOf(await tower.enqueue("a", 1, { retry, key: "k" }))).toEqual([1, 2, 3]);
    expect(await triesOf(await tower.enqueue("a", 1, { retry, in: "20ms" }))).toEqual([1, 2, 3]);
    const again = await tower.runs.retry(once.runId);
    expect(await triesOf(again)).toEqual([1, 2, 3]);
    await database.query("begin");
    const inTransaction = await tower.enqueue("a", 1, { retry, tx: database });
    await database.query("commit");
    expect(await triesOf(inTransaction)).toEqual([1, 2, 3]);
  });

  test("its attempts end at its own timeout, or at none", async () => {
    const tower = make();
    tower.task("a", { timeout: "50ms" }, async (run, ms: number) => {
      await new Promise((resolve, reject) => {
        run.signal.addEventListener("abort", () => reject(run.signal.reason));
        setTimeout(resolve, ms);
      });
      return "done";
    });
    tower.task(
      "b",
      {},
      (run) =>
        new Promise((_, reject) => {
          run.signal.addEventListener("abort", () => reject(run.signal.reason));
        }),
    );
    await tower.start();
    const free = await tower.enqueue("a", 200, { runTimeout: null });
    expect(await free.result({ timeout: "60s" })).toBe("done");
    const short = await tower.enqueue("b", null, { runTimeout: "20ms" });
    await expect(short.result({ timeout: "60s" })).rejects.toMatchObject({ message: expect.stringContaining("20 ms") });
  });

  test("a run that continues it has its policies too", async () => {
    const tower = make();
    const tries: unknown[] = [];
    tower.task("a", {}, (run, step: number) => {
      tries.push([step, run.attempt]);
      if (step === 0) return run.continueAs(1);
      throw new Error("no");
    });
    await tower.start();
    await tower.enqueue("a", 0, { retry: { attempts: 2, delay: "10ms" } });
    await until("its tries", async () => tries.length === 3);
    expect(tries).toEqual([
      [0, 1],
      [1, 1],
      [1, 2],
    ]);
  });

  test("a run not started in time ends as skipped, whether it is claimed or not", async () => {
    const producer = make({ worker: false });
    producer.task("a", {}, () => "ran");
    producer.task("paused", {}, () => "ran");
    producer.task("serial", { overlap: "queue" }, () => "ran");
    await producer.start();
    await producer.pause("paused");
    const handles = [
      await producer.enqueue("a", 1, { expiresIn: "1s" }),
      await producer.enqueue("paused", 1, { expiresIn: "1s" }),
      await producer.enqueue("serial", 1, { expiresAt: Date.now() + 1_000 }),
      await producer.enqueue("serial", 2, { expiresIn: "1s" }),
    ];
    const kept = await producer.enqueue("serial", 3, { expiresIn: "1h" });
    const store = await openPostgres({ url, schema });
    try {
      expect(await store.runs.endExpired(Date.now() - 60_000)).toBe(0);
      expect(await store.runs.endExpired(Date.now() + 2_000)).toBe(4);
      expect(await store.runs.endExpired(Date.now() + 2_000)).toBe(0);
    } finally {
      await store.close();
    }
    for (const handle of handles)
      await expect(handle.result({ timeout: "60s" })).rejects.toMatchObject({
        code: "RUN_SKIPPED",
        message: expect.stringContaining("it had not begun when it expired"),
      });
    expect(await states()).toEqual([{ id: kept.runId, state: expect.any(Number) }]);
    expect(await kept.status()).toMatchObject({ state: "ready" });
  });

  test("a worker starts no expired run, and its slot goes to the next run", async () => {
    const producer = make({ worker: false });
    producer.task("serial", { overlap: "queue" }, () => "ran");
    await producer.start();
    const expired = await producer.enqueue("serial", 1, { expiresIn: "1ms" });
    const next = await producer.enqueue("serial", 2);
    const plain = await producer.enqueue("serial", 3, { expiresIn: "1h" });
    const worker = make();
    const ran: unknown[] = [];
    worker.task("serial", { overlap: "queue" }, (_, payload) => {
      ran.push(payload);
    });
    await worker.start();
    await plain.result({ timeout: "60s" });
    await next.result({ timeout: "60s" });
    await expect(expired.result({ timeout: "60s" })).rejects.toMatchObject({ code: "RUN_SKIPPED" });
    expect(ran).toEqual([2, 3]);
  });

  test("a run that expires while it waits for a slot of its worker is not started", async () => {
    const tower = make({ concurrency: 1 });
    const ran: unknown[] = [];
    let end: () => void = () => undefined;
    tower.task("a", {}, (_, payload) => {
      ran.push(payload);
      return payload === "first"
        ? new Promise<void>((resolve) => {
            end = resolve;
          })
        : undefined;
    });
    await tower.start();
    await tower.enqueue("a", "first");
    await until("the first", async () => ran.length === 1);
    const second = await tower.enqueue("a", "second", { expiresIn: "300ms" });
    await until("it has expired", async () => Date.now() > (await second.status()).dueMs + 400);
    end();
    await expect(second.result({ timeout: "60s" })).rejects.toMatchObject({ code: "RUN_SKIPPED" });
    expect(ran).toEqual(["first"]);
  });

  test("a run that started in time is retried even after its expiry", async () => {
    const tower = make();
    let tries = 0;
    tower.task("a", {}, (run) => {
      tries++;
      if (run.attempt === 1) throw new Error("no");
      return "done";
    });
    await tower.start();
    const handle = await tower.enqueue("a", 1, { expiresIn: "2s", retry: { attempts: 2, delay: "3s", jitter: 0 } });
    expect(await handle.result({ timeout: "60s" })).toBe("done");
    expect(tries).toBe(2);
  });

  test("invalid policies are refused before anything is stored", async () => {
    const tower = make({ worker: false });
    tower.task("a", {}, () => undefined);
    await tower.start();
    const given = (options: object) => tower.enqueue("a", 1, options as never);
    await expect(given({ retry: 0 })).rejects.toMatchObject({ code: "OPTION_INVALID", path: "retry.attempts" });
    await expect(given({ retry: { attempts: 2, delai: "1s" } })).rejects.toMatchObject({
      code: "OPTION_INVALID",
      path: "retry.delai",
      message: expect.stringContaining("delay"),
    });
    await expect(given({ runTimeout: "soon" })).rejects.toMatchObject({ code: "DURATION_INVALID", path: "runTimeout" });
    await expect(given({ expiresIn: "1h", expiresAt: new Date() })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(given({ in: "1h", expiresAt: Date.now() + 1_000 })).rejects.toMatchObject({
      code: "OPTION_INVALID",
      message: expect.stringContaining("not after the time"),
    });
    await expect(given({ expiresAt: Number.NaN })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    expect(await states()).toEqual([]);
  });
});
