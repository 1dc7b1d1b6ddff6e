/** Tests the locks that the library offers, from the opening of an instance to its stop, with the instance's own options. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Carillon, type CarillonOptions, carillon, type Term } from "../../src/index.ts";
import { zooKeeperServer } from "../support/grace-lock-stage.ts";
import { RedisServer } from "../support/redis-server.ts";
import { postgres, redis } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";

describe("locks of a Carillon instance", () => {
  let stage: Stage;
  const towers: Carillon[] = [];
  beforeEach(async () => {
    stage = await openStage(postgres());
  });
  afterEach(async () => {
    await Promise.all(towers.splice(0).map((tower) => tower.stop()));
    await stage.close();
  });

  function make(options: CarillonOptions = {}): Carillon {
    const common = { store: stage.server.url, schema: stage.schema, handleSignals: false, log: recordingLog().log };
    const tower = carillon({ ...common, ...options });
    towers.push(tower);
    return tower;
  }
  const atRedis = () => `${redis().url}?prefix=${stage.schema}`;
  const atZooKeeper = () => `zookeeper://${zooKeeperServer()}/${stage.schema}`;

  it.each([
    { title: "the store", coordination: () => undefined },
    { title: "ZooKeeper", coordination: atZooKeeper },
    { title: "Redis", coordination: atRedis },
  ])("work on $title without start(), and are all released by stop()", async ({ coordination }) => {
    const [a, b] = [make({ coordination: coordination() }), make({ coordination: coordination() })];
    const held = await a.lock("invoices").acquire();
    const slot = await a.semaphore("gpu", { permits: 1 }).acquire();
    const election = a.elect("exporter", { onLead: () => undefined });
    await until("a leads", () => election.term !== undefined);
    expect([await b.lock("invoices").tryAcquire(), await b.semaphore("gpu", { permits: 1 }).tryAcquire()]).toEqual([
      undefined,
      undefined,
    ]);
    const led = new Promise<Term>((resolve) => {
      b.elect("exporter", { onLead: resolve });
    });
    await a.start();
    expect([held.held, a.node !== b.node]).toEqual([true, true]);
    await a.stop();
    expect([held.held, slot.held, election.term]).toEqual([false, false, undefined]);
    expect((await b.lock("invoices").acquire({ wait: "60s" })).fence).toBeGreaterThan(held.fence);
    expect((await b.semaphore("gpu", { permits: 1 }).acquire({ wait: "60s" })).held).toBe(true);
    expect((await led).leads).toBe(true);
    expect(() => a.lock("invoices")).toThrowError(expect.objectContaining({ code: "STOPPED" }));
    await expect(a.graceLock("nightly", { owner: "a" })).rejects.toMatchObject({ code: "STOPPED" });
    await a.stop();
  });

  it.each([
    { title: "the store", coordination: () => undefined },
    { title: "ZooKeeper", coordination: atZooKeeper },
  ])("hold a grace lock on $title for the process's name", async ({ coordination }) => {
    const [a, b] = [
      make({ coordination: coordination(), name: "a" }),
      make({ coordination: coordination(), name: "b" }),
    ];
    const mine = await a.graceLock("nightly", { grace: "1h" });
    const use = await mine.lock();
    const theirs = await b.graceLock("nightly", { grace: "1h" });
    expect([mine.owner, await theirs.tryLock()]).toEqual(["a", undefined]);
    await use.end();
    const next = theirs.lock();
    await a.stop();
    expect((await next).fence).toBeGreaterThan(use.fence);
  });

  it("hold a grace lock as in the documentation's example, and are not re-entrant", async () => {
    const page = readFileSync(new URL("../../../docs/coordination/grace-lock.md", import.meta.url), "utf8");
    const [, text = ""] = /^```ts\n([\s\S]*?)^```/m.exec(page) ?? [];
    const names = ["tower", "days", "write", "told"];
    const example = new Function(...names, `return (async () => {${text}return before;})()`);
    const [tower, other] = [make(), make({ name: "other" })];
    const theirs = await other.graceLock("nightly", { grace: "1h" });
    const cutOff = await theirs.lock();
    await cutOff.note("monday");
    expect(await theirs.tryLock()).toBeUndefined();
    await theirs.close();
    const written: [string, bigint][] = [];
    const write = async (day: string, fence: bigint) => void written.push([day, fence]);
    const told: string[] = [];
    const before = await example(tower, ["tuesday", "wednesday"], write, (line: string) => told.push(line));
    expect(before).toMatchObject({ owner: "other", endedMs: null, note: "monday" });
    expect(told).toEqual(["other came as far as monday"]);
    expect(written.map(([day]) => day)).toEqual(["tuesday", "wednesday"]);
    const last = await (await make({ name: "third" }).graceLock("nightly")).lastUse();
    expect(last).toMatchObject({ owner: "host-1", fence: String(written[1]?.[1]), note: "wednesday" });
    expect(last?.endedMs).toBeGreaterThan(0);
    const held = await tower.lock("books").acquire();
    expect(await tower.lock("books").tryAcquire()).toBeUndefined();
    await held.release();
  });

  it("include no grace lock in Redis", async () => {
    const tower = make({ coordination: atRedis(), name: "a" });
    await expect(tower.graceLock("nightly")).rejects.toMatchObject({ code: "COORDINATION_UNSUPPORTED" });
    expect(await tower.lock("nightly").tryAcquire()).toBeDefined();
  });

  it("keep their fences rising while the cluster moves to another coordination provider and back", async () => {
    const server = await RedisServer.start();
    try {
      let last = 0n;
      for (const coordination of [undefined, server.url, atZooKeeper(), server.url, undefined]) {
        const tower = make({ coordination });
        await tower.start();
        const held = await tower.lock("moved").acquire({ wait: "60s" });
        expect(held.fence).toBeGreaterThan(last);
        last = held.fence;
        await tower.stop();
      }
    } finally {
      await server.close();
    }
  });

  it("are refused to a process with another coordination provider than the cluster's", async () => {
    const node = make();
    await node.lock("x").acquire();
    const other = make({ coordination: atRedis() });
    await expect(other.lock("x").acquire()).rejects.toMatchObject({ code: "COORDINATION_DIFFERS" });
    await expect(other.lock("x").tryAcquire()).rejects.toMatchObject({ code: "COORDINATION_DIFFERS" });
    expect(await make().lock("x").tryAcquire()).toBeUndefined();
  });

  it("wait for an unreachable store, or fail at once, as configured", async () => {
    const away = { store: "postgres://postgres@127.0.0.1:1/postgres" };
    await expect(make(away).lock("x").acquire({ wait: "100ms" })).rejects.toMatchObject({ code: "LOCK_BUSY" });
    const failing = make({ ...away, failFast: true }).lock("x");
    await expect(failing.acquire()).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    await expect(failing.tryAcquire()).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  });
});
