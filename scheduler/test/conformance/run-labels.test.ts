/**
 * Tests labels of runs through the library. run-filters.test.ts tests lists filtered by label; run-labels-remote.test.ts the API and remote
 * workers.
 */
import { describe, expect, test } from "vitest";
import { every } from "../../src/index.ts";
import { edited } from "../../src/task/edits.ts";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

describe.each(everyPostgres())("labels of a run on $title", ({ url }) => {
  const { database, make } = ownSchema(url, "labels", { drain: 0 });
  const labels = { customer: "42", region: "eu" };
  const wait = { timeout: "60s" } as const;

  test("are kept from each kind of enqueue to the history, and are readable by the handler", async () => {
    const tower = make();
    const seen = new Map<number, unknown>();
    const task = tower.task("a", { limit: { perKey: 9 } }, (run) => void seen.set(run.id, run.labels));
    const plain = tower.task("b", {}, (run) => void seen.set(run.id, run.labels));
    await tower.start();
    await database.query("begin");
    const inTransaction = await plain.enqueue(null, { labels, tx: database });
    await database.query("commit");
    const handles = [
      inTransaction,
      await plain.enqueue(null, { labels }),
      await plain.enqueue(null, { labels, key: "k" }),
      await plain.enqueue(null, { labels, key: "r", ifKeyTaken: "replace" }),
      await plain.enqueue(null, { labels, in: "20ms" }),
      await task.enqueue(null, { labels, limitKey: "l" }),
      ...(await plain.enqueueMany([1, 2], { labels })),
    ];
    for (const handle of handles) {
      await handle.result(wait);
      expect(await handle.status()).toMatchObject({ state: "succeeded", labels });
      expect(seen.get(handle.runId)).toEqual(labels);
    }
    const [each] = await plain.enqueueMany([7], (payload: unknown) => ({ labels: { n: String(payload) } }));
    await each?.result(wait);
    expect(await each?.status()).toMatchObject({ labels: { n: "7" } });
    const none = await plain.enqueue(null, { labels: {} });
    await none.result(wait);
    expect([(await none.status()).labels, seen.get(none.runId)]).toEqual([null, {}]);
  });

  test("pass to reruns, the next link of a chain and the next run of the key; a child has its own", async () => {
    const tower = make();
    let release = () => undefined as unknown;
    const held = new Promise((resolve) => {
      release = () => resolve(undefined);
    });
    tower.task("child", { runLabels: { kind: "child" } }, () => undefined);
    const chain = tower.task("chain", {}, async (run, step: number) => {
      if (step < 2) return run.continueAs(step + 1);
      await run.spawn("child");
      return "done";
    });
    const slow = tower.task("slow", {}, () => held);
    await tower.start();
    const first = await chain.enqueue(0, { labels });
    // Waits for the exact count, because a run that ends during the count is counted twice.
    const ended = async (labels: Record<string, string>) =>
      (await tower.runs.count({ labels, states: ["succeeded"] })).runs;
    await until("three links", async () => (await ended(labels)) === 3);
    await until("the child", async () => (await ended({ kind: "child" })) === 1);
    expect((await tower.runs.count({ labels })).runs).toBe(3);
    const again = await tower.runs.retry(first.runId);
    expect(await again.status()).toMatchObject({ labels });
    await slow.enqueue(1, { key: "k" });
    await until("it has begun", async () => (await tower.runs.list({ task: "slow" })).items[0]?.startedMs != null);
    expect(await slow.enqueue(2, { key: "k", ifKeyTaken: "again", labels })).toMatchObject({ again: true });
    release();
    const follows = { task: "slow", labels, states: ["succeeded" as const] };
    await until("what follows", async () => (await tower.runs.count(follows)).runs === 1);
  });

  test("of a task apply to all its runs: slots, schedules, and enqueues, which may override some", async () => {
    const tower = make();
    const own = { team: "billing", region: "us" };
    const seen = new Map<number, unknown>();
    const task = tower.task("a", { runLabels: own, schedule: every("1s") }, (run) => void seen.set(run.id, run.labels));
    await tower.start();
    await task.schedule("more", every("1s"));
    await until("slots of both", async () => {
      const slots: { runId: number; task: string }[] = [];
      for await (const run of tower.runs.each({ source: "slot", states: ["succeeded"], labels: own })) slots.push(run);
      return new Set(slots.map((run) => run.task)).size === 2 && slots.every(({ runId }) => seen.has(runId));
    });
    const plain = await task.enqueue();
    const labelled = await task.enqueue(null, { labels });
    await Promise.all([plain.result(wait), labelled.result(wait)]);
    expect(await plain.status()).toMatchObject({ labels: own });
    expect(await labelled.status()).toMatchObject({ labels: { team: "billing", ...labels } });
    expect([seen.get(plain.runId), seen.get(labelled.runId)]).toEqual([own, { team: "billing", ...labels }]);
    const { store } = await tower.open();
    const record = await store.tasks.byName("a");
    await tower.save(edited(record.definition, { runLabels: {} }), { expectedVersion: record.version });
    const after = await task.enqueue();
    expect((await after.status()).labels).toBeNull();
    expect(await plain.status()).toMatchObject({ labels: own });
  });

  test("filter which runs an operation cancels, reruns and redrives", async () => {
    const tower = make({ scheduler: false });
    const fails = tower.task("fails", {}, () => Promise.reject(new Error("no")));
    const waits = tower.task("waits", {}, () => undefined);
    await tower.start();
    const labelled = await waits.enqueue(null, { in: "1h", labels });
    const other = await waits.enqueue(null, { in: "1h", labels: { customer: "43" } });
    const cancel = await tower.operations.begin("cancel", { labels: { customer: "42" } });
    expect(await cancel.result(wait)).toMatchObject({ total: 1, done: 1 });
    expect([(await labelled.status()).state, (await other.status()).state]).toEqual(["cancelled", "ready"]);
    expect(await labelled.status()).toMatchObject({ labels });
    const failed = [await fails.enqueue(null, { labels }), await fails.enqueue()];
    for (const handle of failed) await expect(handle.result(wait)).rejects.toMatchObject({ code: "RUN_FAILED" });
    const { store } = await tower.open();
    expect((await store.deadLetters.letters({ labels }, 10)).map(({ runId }) => runId)).toEqual([failed[0]?.runId]);
    const rerun = await tower.operations.begin("rerun", { labels: { customer: "43" }, states: ["failed"] });
    expect(await rerun.result(wait)).toMatchObject({ total: 0, done: 0 });
    const redrive = await tower.operations.begin("redrive", { labels });
    expect(await redrive.result(wait)).toMatchObject({ total: 1, done: 1 });
    expect((await tower.runs.count({ task: "fails", labels })).runs).toBe(2);
    const quoted = { q: `it's "so" \\ {a}` };
    await waits.enqueue(null, { in: "1h", labels: quoted });
    expect(await (await tower.operations.begin("cancel", { labels: quoted })).result(wait)).toMatchObject({ done: 1 });
    for (const [kind, target] of [
      ["pause", { labels }],
      ["cancel", { labels: {} }],
      ["cancel", { labels: { a: 1 } as never }],
    ] as const)
      await expect(tower.operations.begin(kind, target)).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });

  test("that are invalid are refused before anything is stored", async () => {
    const tower = make({ worker: false });
    const task = tower.task("a", {}, () => undefined);
    await tower.start();
    const many = (most: number) => Object.fromEntries(Array.from({ length: most }, (_, n) => [`l${n}`, "x"]));
    const refused = async (given: unknown, path: string) =>
      expect(task.enqueue(null, { labels: given as never })).rejects.toMatchObject({ code: "OPTION_INVALID", path });
    await refused({ customer: 42 }, "labels.customer");
    await refused({ customer: "x".repeat(201) }, "labels.customer");
    await refused({ customer: "a\0b" }, "labels.customer");
    await refused({ "no name": "x" }, "labels");
    await refused({ [`a${"b".repeat(63)}`]: "x" }, "labels");
    await refused(JSON.parse('{"__proto__":"x"}'), "labels");
    await refused(["x"], "labels");
    await refused(null, "labels");
    await refused(many(17), "labels");
    expect((await tower.runs.count()).runs).toBe(0);
    expect(await (await task.enqueue(null, { labels: many(16) })).status()).toMatchObject({ labels: many(16) });
    expect(() => tower.task("b", { runLabels: { a: 1 } as never }, () => undefined)).toThrow("runLabels.a");
  });
});
