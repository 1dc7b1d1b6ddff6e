import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AtomicLong } from "../../src/recipes/counters/atomic-long.ts";
import { SharedCount } from "../../src/recipes/counters/shared-count.ts";
import { ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

describe(`numbers on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  beforeEach(() => {
    clients = new Clients();
    path = ownPath("number");
  });
  afterEach(() => clients.closeAll());

  describe("shared count", () => {
    it("is seen and set by all clients", async () => {
      const a = new SharedCount(await clients.connect(), `${path}/count`, 5);
      const b = new SharedCount(await clients.connect(), `${path}/count`, 9);
      const told: number[] = [];
      b.listen({ changed: ({ count }) => told.push(count) });
      expect(() => a.count).toThrow(expect.objectContaining({ code: "NOT_HELD" }));
      await a.start();
      await b.start();
      expect(a.versioned).toEqual({ count: 5, version: 0 });
      expect(b.count).toBe(5);
      await a.set(-7);
      expect(a.versioned).toEqual({ count: -7, version: 1 });
      await until("the other sees it", () => b.count === -7);
      expect(await b.trySet(b.versioned, 8)).toBe(true);
      expect(await a.trySet({ count: -7, version: 1 }, 9)).toBe(false);
      expect(a.versioned).toEqual({ count: 8, version: 2 });
      expect(told).toEqual([5, -7, 8]);
      await a.close();
      await b.close();
    });

    it("reports that the client's chroot does not exist", async () => {
      const zk = await clients.connect({}, `${sharedServer()}${path}`);
      for (const at of ["/count", "/deep/er/count"]) {
        await expect(new SharedCount(zk, at).start()).rejects.toMatchObject({ code: "NO_NODE" });
        await expect(new SharedCount(zk, at).set(1)).rejects.toMatchObject({ code: "NO_NODE" });
      }
    });

    it("counts correctly if all clients update it at once", async () => {
      const all = await Promise.all(
        Array.from({ length: 3 }, async () => new SharedCount(await clients.connect(), `${path}/count`)),
      );
      await Promise.all(all.map((one) => one.start()));
      await Promise.all(
        all.map(async (one) => {
          for (let done = 0; done < 20; ) {
            const before = one.versioned;
            if (await one.trySet(before, before.count + 1)) done++;
          }
        }),
      );
      await until("all see the sum", () => all.every((one) => one.count === 60));
      for (const one of all) await one.close();
    });

    it("reports what is wrong: not a 32-bit number, other data, deleted", async () => {
      const zk = await clients.connect();
      expect(() => new SharedCount(zk, path, 2 ** 31)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
      await zk.create(path, "five5");
      const wrong = new SharedCount(zk, path);
      await expect(wrong.start()).rejects.toMatchObject({ code: "DATA_INVALID", path });
      await zk.set(path, Buffer.from([0, 0, 0, 3]));
      const right = new SharedCount(zk, path);
      await right.start();
      const trouble = new Promise((resolve) => right.listen({ trouble: resolve }));
      await expect(right.set(0.5)).rejects.toMatchObject({ code: "OPTION_INVALID" });
      await zk.set(path, "x");
      expect(await trouble).toMatchObject({ code: "DATA_INVALID" });
      await zk.delete(path);
      await expect(right.trySet(right.versioned, 4)).rejects.toMatchObject({ code: "NO_NODE" });
      await right.set(4);
      expect(right.versioned).toEqual({ count: 4, version: 0 });
      await right.close();
      await expect(right.start()).rejects.toMatchObject({ code: "CLOSED" });
    });

    it("is notified of a value set during a lost connection", async () => {
      const proxy = await ZooKeeperProxy.before(sharedServer());
      try {
        const far = new SharedCount(await clients.connect({}, proxy.address), path, 1);
        await far.start();
        const near = new SharedCount(await clients.connect(), path);
        await near.start();
        const stale = new Promise<void>((resolve) => far.listen({ stale: resolve }));
        proxy.refuse();
        await stale;
        await near.set(2);
        expect(far.count).toBe(1);
        proxy.accept();
        await until("it caught up", () => far.fresh && far.count === 2);
        await Promise.all([far.close(), near.close()]);
      } finally {
        await proxy.close();
      }
    });
  });

  describe("atomic long", () => {
    it("starts at 0, and can be changed, set and compared", async () => {
      const long = new AtomicLong(await clients.connect(), `${path}/a/long`);
      expect(await long.get()).toBe(0n);
      expect(await long.increment()).toEqual({ before: 0n, after: 1n });
      expect(await long.add(40n)).toEqual({ before: 1n, after: 41n });
      expect(await long.subtract(1n)).toEqual({ before: 41n, after: 40n });
      expect(await long.decrement()).toEqual({ before: 40n, after: 39n });
      expect(await long.compareAndSet(40n, 1n)).toBe(false);
      expect(await long.compareAndSet(39n, 2n ** 63n - 1n)).toBe(true);
      expect(await long.increment()).toEqual({ before: 2n ** 63n - 1n, after: -(2n ** 63n) });
      await long.set(-5n);
      expect(await long.get()).toBe(-5n);
      expect(await long.initialize(9n)).toBe(false);
      const other = new AtomicLong(await clients.connect(), `${path}/b/long`);
      expect(await other.initialize(9n)).toBe(true);
      expect(await other.get()).toBe(9n);
      const third = new AtomicLong(await clients.connect(), `${path}/c/long`);
      await third.set(3n);
      expect(await third.get()).toBe(3n);
    });

    it("loses no addition under contention, and switches to a lock if needed", async () => {
      const options = { tries: 2, lockPath: `${path}/lock`, lockLimitMs: 60_000 };
      const all = await Promise.all(
        Array.from({ length: 4 }, async () => new AtomicLong(await clients.connect(), `${path}/long`, options)),
      );
      let failed = 0;
      const after: bigint[] = [];
      await Promise.all(
        all.map(async (one) => {
          for (let added = 0; added < 25; added++) {
            try {
              after.push((await one.increment()).after);
            } catch (error) {
              // `tries` is 2: even under the lock, a writer that has not needed the lock may be faster both times.
              expect(error).toMatchObject({ code: "BAD_VERSION" });
              failed++;
            }
          }
        }),
      );
      expect(await all[0]!.get()).toBe(BigInt(100 - failed));
      expect(new Set(after).size).toBe(after.length);
      expect(failed).toBeLessThan(100);
    });

    it("reports what is wrong: not a 64-bit number, other data, options", async () => {
      const zk = await clients.connect();
      const long = new AtomicLong(zk, path);
      await expect(long.set(2n ** 63n)).rejects.toMatchObject({ code: "OPTION_INVALID" });
      await expect(long.add(2n ** 64n)).rejects.toMatchObject({ code: "OPTION_INVALID" });
      expect(() => new AtomicLong(zk, path, { tries: 0 })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
      await zk.create(path, "seven77");
      await expect(long.get()).rejects.toMatchObject({ code: "DATA_INVALID", path });
      await expect(long.increment()).rejects.toMatchObject({ code: "DATA_INVALID" });
    });
  });
});
