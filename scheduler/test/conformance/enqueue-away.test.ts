import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { StoreProxy } from "../support/proxy.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

describe("an enqueue while the store is unreachable", () => {
  const schema = `away_${randomBytes(4).toString("hex")}`;
  const towers: Carillon[] = [];
  let proxy: StoreProxy;
  const make = (options: object = {}) => {
    const tower = carillon({ store: proxy.url, schema, handleSignals: false, log: recordingLog().log, ...options });
    tower.task("t", {}, () => undefined);
    towers.push(tower);
    return tower;
  };

  beforeAll(async () => {
    proxy = await StoreProxy.before(postgres().url);
  });
  afterEach(async () => {
    proxy.heal();
    await Promise.all(towers.splice(0).map((tower) => tower.stop()));
  });
  afterAll(async () => {
    await proxy.close();
    const client = new pg.Client({ connectionString: postgres().url });
    await client.connect();
    await client.query(`drop schema if exists ${schema} cascade`);
    await client.end();
  });

  it.each(["before it was ever reached", "after it was"])("waits for the configured time, %s", async (when) => {
    const tower = make({ worker: false, scheduler: false });
    if (when === "after it was") await tower.enqueue("t", 1);
    proxy.cut({ refuse: true });
    const late = tower.enqueue("t", 2, { timeout: "300ms" });
    const beganMs = performance.now();
    await expect(late).rejects.toMatchObject({ code: "ENQUEUE_TIMEOUT", hint: /key/ });
    expect(performance.now() - beganMs).toBeGreaterThan(290);
    const end = new AbortController();
    const ended = tower.enqueue("t", 3, { signal: end.signal });
    end.abort(new Error("the request is over"));
    await expect(ended).rejects.toThrow("the request is over");
    await expect(tower.enqueue("t", 4, { timeout: "soon" as never })).rejects.toMatchObject({
      code: "DURATION_INVALID",
    });
    await expect(tower.enqueue("t", 4, { signal: {} as never })).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });

  it("succeeds if the store comes back in time, and creates one run", async () => {
    const tower = make();
    await tower.start();
    await tower.enqueue("t", 1);
    proxy.cut({ refuse: true });
    const waiting = tower.enqueue("t", 2);
    await new Promise((resolve) => setTimeout(resolve, 300));
    proxy.heal();
    const { runId } = await waiting;
    const { store } = await tower.open();
    await until("it has run", async () => (await store.runs.find(runId)).endedMs !== null);
  });

  it("rejects at once with `failFast`", async () => {
    const tower = make({ failFast: true, worker: false, scheduler: false });
    await tower.enqueue("t", 1);
    proxy.cut({ refuse: true });
    // ENQUEUE_TIMEOUT would mean that the call had waited, which `failFast` rules out.
    await expect(tower.enqueue("t", 2)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  });

  it("does not prevent its process from stopping", async () => {
    const tower = make({ drain: "500ms" });
    await tower.start();
    await tower.enqueue("t", 1);
    proxy.cut({ refuse: true });
    const pending = Promise.allSettled([1, 2, 3].map((n) => tower.enqueue("t", n)));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await tower.stop();
    for (const one of await pending) expect(one).toMatchObject({ status: "rejected", reason: { code: "STOPPED" } });
  });

  it("nor does a verdict that cannot be written prevent it", async () => {
    const tower = make({ drain: "500ms" });
    let started = false;
    let end = (): void => undefined;
    tower.task("ends-while-away", {}, () => {
      started = true;
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    await tower.start();
    await tower.enqueue("ends-while-away");
    await until("it runs", () => started);
    proxy.cut({ refuse: true });
    end();
    await tower.stop();
  });
});
