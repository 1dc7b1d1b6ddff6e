import { describe, expect, test } from "vitest";
import type { Carillon } from "../../src/index.ts";
import { ownSchema } from "../support/own-schema.ts";
import { StoreProxy } from "../support/proxy.ts";
import { everyPostgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

describe.each(everyPostgres())("replacing on $title", ({ url }) => {
  const { schema, database, make } = ownSchema(url, "replacing", { drain: 0 });
  const live = async () =>
    (await database.query(`select id::int, payload, key from ${schema}.run order by id`)).rows as object[];

  test("a waiting run ends as skipped, and the new run has its key, with its own payload, time and priority", async () => {
    const tower = make({ worker: false });
    tower.task("a", {}, () => undefined);
    await tower.start();
    const first = await tower.enqueue("a", 1, { key: "k", in: "1h" });
    const kept = await tower.enqueue("a", 2, { key: "k", in: "2h", ifKeyTaken: "keep" });
    expect(kept).toMatchObject({ runId: first.runId, created: false, replaced: undefined });
    const second = await tower.enqueue("a", 2, { key: "k", in: "2h", priority: 9, ifKeyTaken: "replace" });
    expect(second).toMatchObject({ created: true, replaced: first.runId });
    await expect(first.result({ timeout: "60s" })).rejects.toMatchObject({
      code: "RUN_SKIPPED",
      message: expect.stringContaining("replaced by a newer enqueue"),
    });
    expect(await second.status()).toMatchObject({ payload: 2, priority: 9, key: "k", state: "ready" });
    expect(await live()).toEqual([{ id: second.runId, payload: 2, key: "k" }]);
    const other = await tower.enqueue("a", 3, { key: "other", in: "1h", ifKeyTaken: "replace" });
    expect(other).toMatchObject({ created: true, replaced: undefined });
    await tower.pause("a");
    const third = await tower.enqueue("a", 4, { key: "k", ifKeyTaken: "replace" });
    expect(third).toMatchObject({ created: true, replaced: second.runId });
    expect(await third.status()).toMatchObject({ state: "paused", payload: 4 });
  });

  test("a run that has started, or that waits for another attempt, is not replaced", async () => {
    const tower = make();
    let end: (how: "throws" | "returns") => void = () => undefined;
    const ran: unknown[] = [];
    tower.task("a", { retry: { attempts: 2, delay: "1h", jitter: 0 } }, (_, payload) => {
      ran.push(payload);
      return new Promise<string>((resolve, reject) => {
        end = (how) => (how === "throws" ? reject(new Error("no")) : resolve("done"));
      });
    });
    await tower.start();
    const first = await tower.enqueue("a", 1, { key: "k" });
    await until("its try", async () => ran.length === 1);
    const replacing = () => tower.enqueue("a", 2, { key: "k", ifKeyTaken: "replace" });
    expect(await replacing()).toMatchObject({ runId: first.runId, created: false, replaced: undefined });
    end("throws");
    await until("its end", async () => (await first.status()).state === "ready");
    expect(await replacing()).toMatchObject({ runId: first.runId, created: false, replaced: undefined });
    await first.cancel();
    const next = await replacing();
    expect(next).toMatchObject({ created: true, replaced: undefined });
    await until("the next try", async () => ran.length === 2);
    end("returns");
    expect(await next.result({ timeout: "60s" })).toBe("done");
    expect(ran).toEqual([1, 2]);
  });

  test("a run that a limit holds is replaced, and its slot of concurrency goes to the next", async () => {
    const tower = make({ worker: false });
    tower.task("a", { overlap: "queue" }, () => undefined);
    await tower.start();
    const keyed = await tower.enqueue("a", 1, { key: "k" });
    const waiting = await tower.enqueue("a", 2);
    expect([(await keyed.status()).state, (await waiting.status()).state]).toEqual(["ready", "held"]);
    const later = await tower.enqueue("a", 3, { key: "k", in: "1h", ifKeyTaken: "replace" });
    expect(later.replaced).toBe(keyed.runId);
    expect([(await waiting.status()).state, (await later.status()).state]).toEqual(["ready", "held"]);
  });

  test("of many concurrent runs exactly one is left, and every other one is accounted for", async () => {
    const towers = [make({ worker: false }), make({ worker: false })];
    for (const tower of towers) tower.task("a", {}, () => undefined);
    await Promise.all(towers.map((tower) => tower.start()));
    const handles = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        (towers[n % 2] as Carillon).enqueue("a", n, { key: "k", in: "1h", ifKeyTaken: "replace" }),
      ),
    );
    expect(handles.every(({ created }) => created)).toBe(true);
    const replaced = handles.flatMap((handle) => handle.replaced ?? []);
    expect(new Set(replaced).size).toBe(39);
    const [left, ...others] = await live();
    expect(others).toEqual([]);
    expect(left).toMatchObject({ id: handles.find(({ runId }) => !replaced.includes(runId))?.runId });
    const skipped = await towers[0]?.runs.list({ states: ["skipped"] });
    expect(new Set(skipped?.items.map(({ runId }) => runId))).toEqual(new Set(replaced));
  });

  test("in the caller's transaction it takes effect at the commit, or not at all", async () => {
    const tower = make({ worker: false });
    tower.task("a", {}, () => undefined);
    await tower.start();
    const first = await tower.enqueue("a", 1, { key: "k", in: "1h" });
    const replace = () => tower.enqueue("a", 2, { key: "k", in: "1h", ifKeyTaken: "replace", tx: database });
    await database.query("begin");
    await replace();
    await database.query("rollback");
    expect(await live()).toEqual([{ id: first.runId, payload: 1, key: "k" }]);
    await database.query("begin");
    const second = await replace();
    await database.query("commit");
    expect(second.replaced).toBe(first.runId);
    expect(await live()).toEqual([{ id: second.runId, payload: 2, key: "k" }]);
  });

  test("a lost reply makes one run", async () => {
    const proxy = await StoreProxy.before(url);
    try {
      const tower = make({ worker: false, scheduler: false, store: proxy.url });
      const direct = make({ worker: false });
      direct.task("a", {}, () => undefined);
      await direct.start();
      await tower.enqueue("a", 1, { key: "k", in: "1h" });
      proxy.swallowCommit();
      const second = await tower.enqueue("a", 2, { key: "k", in: "1h", ifKeyTaken: "replace" });
      expect(await live()).toEqual([{ id: second.runId, payload: 2, key: "k" }]);
      expect(second.created).toBe(true);
      expect(proxy.swallowed).toBe(1);
    } finally {
      proxy.heal();
      await proxy.close();
    }
  });

  test("refuses unknown options, and a replacement without a key", async () => {
    const tower = make({ worker: false });
    tower.task("a", {}, () => undefined);
    for (const options of [{ ifKeyTaken: "replace" }, { key: "k", ifKeyTaken: "agian" }])
      await expect(tower.enqueue("a", 1, options as never)).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });
});
