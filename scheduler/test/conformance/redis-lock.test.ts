import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { HeldRedisLock } from "../../src/coordination/redis/held-lock.ts";
import { RedisLocks } from "../../src/coordination/redis/lock.ts";
import { PausableClock } from "../support/pausable-clock.ts";
import { StoreProxy } from "../support/proxy.ts";
import { RedisServer } from "../support/redis-server.ts";
import { until } from "../support/store-stage.ts";

const patienceMs = 60_000;
/** Lock timeout in ms for tests in which the lock must pass on because its holder released it, not because it expired. */
const ttlMs = 600_000;
/** Lock timeout in ms for tests in which the lock must expire. */
const briefMs = 1_500;
/** Lock timeout in ms that is over within a test, but not while a busy machine delays the holder for some seconds. */
const steadyMs = 6_000;

describe.each([
  { title: "by chance", fair: false },
  { title: "in turn", fair: true },
])("Redis lock, waiting $title", ({ fair }) => {
  let server: RedisServer;
  let bases = 0;
  let names = 0;
  const open: { close(): Promise<void> }[] = [];
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
  });
  afterAll(() => server.close());

  const soon = (what: string, condition: () => boolean | Promise<boolean>) => until(what, condition, patienceMs);
  /** Simulates one process: it has its own connection, through a proxy that can disturb it. */
  const join = async () => {
    const proxy = await StoreProxy.before(server.url);
    const clock = new PausableClock();
    const fenceBase = async () => ++bases;
    const log: string[] = [];
    const locks = await RedisLocks.open({
      url: proxy.url,
      clusterId: "cluster-a",
      fenceBase,
      clock,
      log: (line) => void log.push(line),
    });
    const close = async () => {
      await locks.close();
      await proxy.close();
    };
    open.push({ close });
    return {
      proxy,
      clock,
      lock: (name: string, ms = ttlMs) => locks.lock(name, { ttlMs: ms, fair, longestPauseMs: 100 }),
    };
  };
  const fresh = () => `lock-${fair}-${++names}`;

  it("is held by one holder, and free once it is released", async () => {
    const name = fresh();
    const [a, b] = [(await join()).lock(name), (await join()).lock(name)];
    const held = await a.acquire();
    expect([held.held, held.name, held.signal.aborted]).toEqual([true, name, false]);
    expect(await b.tryAcquire()).toBeUndefined();
    expect(await b.tryAcquire({ limitMs: 50 })).toBeUndefined();
    expect(await a.tryAcquire()).toBeUndefined();
    expect(await held.release()).toBe(true);
    expect([held.held, held.signal.aborted]).toEqual([false, true]);
    const next = await b.acquire();
    expect(next.fence).toBeGreaterThan(held.fence);
    expect(await held.release()).toBe(false);
    expect([next.held, await a.tryAcquire()]).toEqual([true, undefined]);
    await next.release();
  });

  it("is held for longer than its TTL by a live holder", async () => {
    const name = fresh();
    const [a, b] = [(await join()).lock(name, steadyMs), (await join()).lock(name, steadyMs)];
    const held = await a.acquire();
    expect(await b.tryAcquire({ limitMs: 1.25 * steadyMs })).toBeUndefined();
    expect(held.held).toBe(true);
    await held.release();
  });

  it("ends the wait on a signal, and leaves nothing behind", async () => {
    const name = fresh();
    const [a, b] = [(await join()).lock(name), (await join()).lock(name)];
    const held = await a.acquire();
    const end = new AbortController();
    const waiting = b.acquire({ signal: end.signal });
    end.abort(new Error("no more"));
    await expect(waiting).rejects.toThrow("no more");
    await expect(b.acquire({ signal: end.signal })).rejects.toThrow("no more");
    await held.release();
    const again = await a.tryAcquire({ limitMs: patienceMs });
    expect(again?.held).toBe(true);
    await again?.release();
  });

  it("passes to another holder when its holder is frozen, and the late holder detects it", async () => {
    const name = fresh();
    const [a, b] = [await join(), await join()];
    const held = await a.lock(name, briefMs).acquire();
    a.clock.pause();
    a.proxy.stall();
    const waiting = b.lock(name).acquire();
    const next = await waiting;
    expect([held.held, next.held, next.fence > held.fence]).toEqual([false, true, true]);
    a.proxy.flow();
    a.clock.resume();
    await soon("the late one is told", () => held.signal.aborted);
    expect(await held.release()).toBe(false);
    expect([next.held, await a.lock(name).tryAcquire()]).toEqual([true, undefined]);
    await next.release();
  });

  it("is trusted no longer than Redis keeps it, when the connection is cut", async () => {
    const name = fresh();
    const [a, b] = [await join(), await join()];
    const held = await a.lock(name, briefMs).acquire();
    a.proxy.cut({ refuse: true });
    const next = await b.lock(name).acquire();
    expect([held.held, next.held]).toEqual([false, true]);
    await next.release();
    await expect(a.lock(name).tryAcquire()).rejects.toMatchObject({ code: "COORDINATION_UNREACHABLE" });
    const waiting = a.lock(name).acquire();
    a.proxy.heal();
    await (await waiting).release();
  });

  it("recognises its own entry if the answer was lost", async () => {
    const name = fresh();
    const a = await join();
    await (await a.lock(name).acquire()).release();
    a.proxy.swallowReply((reply) => /^\*2\r\n:1\r\n/.test(reply.toString("latin1")));
    // The lock was taken but the reply was lost. If the caller did not recognise the lock as its own, it would have to wait until the lock
    // expires.
    const held = await a.lock(name).acquire();
    expect(a.proxy.swallowed).toBe(1);
    expect(held.held).toBe(true);
    await held.release();
  });

  it.each(["wiped", "restarted"])("issues higher fences even after Redis was %s", async (how) => {
    const name = fresh();
    const [a, b] = [await join(), await join()];
    let last = 0n;
    for (let round = 0; round < 3; round++) {
      for (const one of [a, b]) {
        const held = await one.lock(name).acquire();
        expect(held.fence).toBeGreaterThan(last);
        last = held.fence;
        await held.release();
      }
      if (how === "wiped") await server.ask("FLUSHALL");
      else {
        await server.kill();
        await server.up();
      }
    }
  });

  it("serves many holders, one after another, with rising fences", async () => {
    const name = fresh();
    const processes = await Promise.all(Array.from({ length: 16 }, join));
    const fences: bigint[] = [];
    let holding: HeldRedisLock | undefined;
    await Promise.all(
      processes.map(async (one) => {
        for (let use = 0; use < 5; use++) {
          const held = await one.lock(name).acquire();
          expect(holding?.held ?? false).toBe(false);
          holding = held;
          fences.push(held.fence);
          await new Promise((resolve) => setImmediate(resolve));
          expect(holding).toBe(held);
          await held.release();
        }
      }),
    );
    expect(fences).toHaveLength(80);
    expect(fences.every((fence, index) => index === 0 || fence > (fences[index - 1] as bigint))).toBe(true);
  });
});

describe("Redis locks", () => {
  it("serve waiters in request order if fair", async () => {
    const server = await RedisServer.start();
    let bases = 0;
    const locks = await RedisLocks.open({
      url: server.url,
      clusterId: "a",
      fenceBase: async () => ++bases,
      log: () => undefined,
    });
    // Waiters retry three times within `ttlMs`, so none retries before the test is over; they are woken in their order.
    const lock = locks.lock("queue", { fair: true, ttlMs });
    const held = await lock.acquire();
    const order: number[] = [];
    const waiting: Promise<void>[] = [];
    for (let index = 0; index < 8; index++) {
      waiting.push(
        lock.acquire().then(async (next) => {
          order.push(index);
          await next.release();
        }),
      );
      const queue = "{carillon:lock:queue}:queue";
      await until("it is in the queue", async () => (await server.ask("ZCARD", queue)) === index + 1);
    }
    await held.release();
    await until("each is told that it is next", () => order.length === 8);
    await Promise.all(waiting);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    await locks.close();
    await server.close();
  });

  it("refuse invalid options", async () => {
    const server = await RedisServer.start();
    const open = (clusterId: string, base: number) =>
      RedisLocks.open({ url: server.url, clusterId, fenceBase: async () => base, log: () => undefined });
    const locks = await open("a", -1);
    for (const bad of [{ ttlMs: 10 }, { ttlMs: Number.NaN }, { longestPauseMs: 0 }]) {
      expect(() => locks.lock("x", bad)).toThrowError(expect.objectContaining({ code: "OPTION_INVALID" }));
    }
    for (const bad of ["", "a{b}", "x".repeat(201)]) {
      expect(() => locks.lock(bad)).toThrowError(expect.objectContaining({ code: "OPTION_INVALID" }));
    }
    await expect(locks.lock("x").acquire()).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(open("b", 1)).rejects.toMatchObject({ code: "COORDINATION_FOREIGN" });
    await locks.close();
    await server.close();
  });
});
