/** Tests locks, leases and barriers together with Java's Curator on the same paths, in both directions. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { DoubleBarrier } from "../../src/recipes/barrier/double-barrier.ts";
import { MultiLock } from "../../src/recipes/locks/multi-lock.ts";
import { Mutex, revoke } from "../../src/recipes/locks/mutex.ts";
import { ReadWriteLock } from "../../src/recipes/locks/read-write-lock.ts";
import { Semaphore } from "../../src/recipes/locks/semaphore.ts";
import { type Java, startJava } from "../support/java.ts";
import { ownPath, sharedServer } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

const limitMs = 60_000;

describe("locks shared with Java's Curator", () => {
  let java: Java;
  let clients: Clients;
  let zk: ZooKeeper;
  let path: string;
  beforeAll(async () => {
    java = await startJava(sharedServer());
  });
  afterAll(() => java?.close());
  beforeEach(async () => {
    clients = new Clients();
    zk = await clients.connect();
    path = ownPath("java");
  });
  afterEach(() => clients.closeAll());

  const nodes = (at: string, count: number) =>
    until(`there are ${count} nodes`, async () => ((await zk.exists(at))?.childCount ?? 0) === count);

  it("a mutex has one holder, in line order", async () => {
    const ours = new Mutex(zk, path);
    const theirs = await java.make("mutex", path);
    for (let round = 0; round < 3; round++) {
      const held = await ours.acquire();
      expect(await theirs.ask("acquire", 0)).toBe(false);
      const theirTurn = theirs.ask("acquire", limitMs);
      await nodes(path, 2);
      const next = ours.acquire();
      await nodes(path, 3);
      await held.release();
      expect(await theirTurn).toBe(true);
      expect(await ours.tryAcquire({ limitMs: 50 })).toBeUndefined();
      await nodes(path, 2);
      expect(await ours.participants()).toEqual(await theirs.do("participants"));
      const [place] = await ours.participants();
      // Curator stores its address as the node's data. While the mutex is revocable, which ends with the first release, the data is empty.
      if (round === 0) expect((await zk.get(place!)).data).toHaveLength(0);
      await theirs.do("release");
      const last = await next;
      expect(last.fence).toBeGreaterThan(held.fence);
      await last.release();
    }
  });

  it("a multi-lock queues for each of its locks", async () => {
    const [first, second] = [`${path}/first`, `${path}/second`];
    const both = new MultiLock([new Mutex(zk, first), new Mutex(zk, second)]);
    const theirFirst = await java.make("mutex", first);
    const theirSecond = await java.make("mutex", second);
    expect(await theirSecond.ask("acquire", limitMs)).toBe(true);
    expect(await both.tryAcquire()).toBeUndefined();
    const ours = both.acquire();
    await nodes(second, 2);
    expect(await theirFirst.ask("acquire", 0)).toBe(false);
    await theirSecond.do("release");
    const held = await ours;
    expect(await theirSecond.ask("acquire", 0)).toBe(false);
    await held.release();
    expect(await theirFirst.ask("acquire", limitMs)).toBe(true);
    await theirFirst.do("release");
  });

  it("each side can ask the other to release", async () => {
    const ours = new Mutex(zk, path);
    const theirs = await java.make("mutex", path);
    expect(await theirs.ask("acquire", limitMs)).toBe(true);
    const [place] = await ours.participants();
    expect(await revoke(zk, place!)).toBe(true);
    await theirs.next("revoke");
    await theirs.do("release");

    const held = await ours.acquire();
    const asked = new Promise((resolve) => held.revocation.addEventListener("abort", resolve, { once: true }));
    await theirs.do("revoke", held.path);
    await asked;
    expect(held.held).toBe(true);
    await held.release();
  });

  it("readers share and writers do not", async () => {
    const ours = new ReadWriteLock(zk, path);
    const theirs = await java.make("readWriteLock", path);
    const late = await java.make("readWriteLock", path);
    const reading = await ours.read.acquire();
    expect(await theirs.ask("acquireRead", limitMs)).toBe(true);
    const writing = ours.write.acquire();
    await nodes(path, 3);
    expect(await late.ask("acquireRead", 50)).toBe(false);
    await reading.release();
    await theirs.do("releaseRead");
    const writer = await writing;
    expect(await theirs.ask("acquireWrite", 50)).toBe(false);
    const theirWrite = theirs.ask("acquireWrite", limitMs);
    await nodes(path, 2);
    const ourRead = ours.read.acquire();
    await nodes(path, 3);
    await writer.release();
    expect(await theirWrite).toBe(true);
    expect(await ours.read.tryAcquire()).toBeUndefined();
    // Java's writer also takes the read lock and releases the write lock; then our reader gets the read lock too.
    expect(await theirs.ask("acquireRead", limitMs)).toBe(true);
    await theirs.do("releaseWrite");
    const reader = await ourRead;
    expect(await ours.write.tryAcquire({ limitMs: 50 })).toBeUndefined();
    await theirs.do("releaseRead");
    await reader.release();
  });

  it("Java's writer waits while this client's writer continues as a reader", async () => {
    const ours = new ReadWriteLock(zk, path);
    const theirs = await java.make("readWriteLock", path);
    const owner = "ours";
    const writer = await ours.write.acquire({ owner });
    let entered = false;
    const theirWrite = theirs.ask("acquireWrite", limitMs).then((acquired) => {
      entered = acquired;
    });
    await nodes(path, 2);
    const reader = await ours.read.acquire({ owner });
    await writer.release();
    expect(await ours.read.tryAcquire({ limitMs: 300 })).toBeUndefined();
    expect(entered).toBe(false);
    await reader.release();
    await theirWrite;
    expect(entered).toBe(true);
    await theirs.do("releaseWrite");
  });

  it("leases of both sides are counted together", async () => {
    const ours = new Semaphore(zk, path, 3);
    const theirs = await java.make("semaphore", path, 3);
    const lease = await ours.acquire();
    expect(await theirs.ask("acquire", limitMs, 2)).toBe(true);
    expect(await theirs.do("participants")).toHaveLength(3);
    expect(await ours.tryAcquire()).toBeUndefined();
    expect(await theirs.ask("acquire", 50)).toBe(false);
    const theirNext = theirs.ask("acquire", limitMs);
    await nodes(`${path}/leases`, 4);
    await lease.release();
    expect(await theirNext).toBe(true);
    const ourNext = ours.acquire();
    await nodes(`${path}/leases`, 4);
    await theirs.do("release");
    const last = await ourNext;
    expect(last.fence).toBeGreaterThan(lease.fence);
    await last.release();
    await theirs.do("release");
    await theirs.do("release");
    expect(await ours.participants()).toEqual([]);
  });

  it("barriers are entered and left together", async () => {
    // A new Java object is created in each round, because a Java object serves only one round.
    for (let round = 0; round < 4; round++) {
      const ours = [new DoubleBarrier(zk, path, 3), new DoubleBarrier(await clients.connect(), path, 3)] as const;
      const theirs = await java.make("doubleBarrier", path, 3);
      let entered = 0;
      const entering = ours.map(async (one) => {
        const inside = await one.enter();
        entered++;
        return inside;
      });
      await nodes(path, 2);
      expect(entered).toBe(0);
      expect(await theirs.ask("enter", limitMs)).toBe(true);
      const [first, second] = await Promise.all(entering);
      const theirEnd = theirs.ask("leave", limitMs);
      const ourEnds = [first, second].map((inside) => inside?.leave({ limitMs }));
      expect(await Promise.all([theirEnd, ...ourEnds])).toEqual([true, true, true]);
      expect((await zk.exists(path))?.childCount ?? 0).toBe(0);
    }
  });
});
