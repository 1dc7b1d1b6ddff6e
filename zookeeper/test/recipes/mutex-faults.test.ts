/** Tests a mutex while its network and servers fail: every acquire settles, no node is left over, and there is at most one holder. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isZooKeeperError } from "../../src/base/errors.ts";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { DoubleBarrier } from "../../src/recipes/barrier/double-barrier.ts";
import type { Lock } from "../../src/recipes/locks/acquisition.ts";
import { Mutex } from "../../src/recipes/locks/mutex.ts";
import { ReadWriteLock } from "../../src/recipes/locks/read-write-lock.ts";
import { Semaphore } from "../../src/recipes/locks/semaphore.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { namesUnder } from "../support/names-under.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { randomFrom } from "../support/random.ts";
import { ownPath, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

describe("a mutex under faults", () => {
  let clients: Clients;
  let path: string;
  beforeEach(() => {
    clients = new Clients();
    path = ownPath("mutex");
  });
  afterEach(() => clients.closeAll());

  it("gives up in time if the server is silent, and leaves the line when the server responds again", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await clients.connect({ sessionTimeoutMs: 30_000 }, proxy.address);
    const watcher = await clients.connect();
    const mutex = new Mutex(zk, path);
    await (await mutex.acquire()).release();
    proxy.pause("toClient");
    const seen = proxy.next(op.create2);
    const trying = mutex.tryAcquire({ limitMs: 300 });
    await seen;
    expect(await trying).toBeUndefined();
    expect(await new Mutex(watcher, path).participants()).toHaveLength(1);
    proxy.resume("toClient");
    await until("its node is gone", async () => (await new Mutex(watcher, path).participants()).length === 0);
  });

  it("continues in the next session if its session ends while it waits, as other locks do", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    const other = await clients.connect();
    const kinds: ((client: ZooKeeper) => Pick<Lock, "acquire">)[] = [
      (client) => new Mutex(client, `${path}/mutex`),
      (client) => new ReadWriteLock(client, `${path}/lock`).write,
      (client) => new Semaphore(client, `${path}/semaphore`, 1),
    ];
    const holders = await Promise.all(kinds.map((kind) => kind(other).acquire()));
    const { session } = zk;
    const reading = new ReadWriteLock(zk, `${path}/lock`).read.acquire();
    const waiting = [...kinds.map((kind) => kind(zk).acquire()), reading];
    // The semaphore has two nodes: one in the queue of its mutex, and one for its lease, which exceeds the limit.
    const nodes = waiting.length + 1;
    await until("they stand in line", async () => (await session.ephemerals(path)).length === nodes);
    proxy.pause();
    await until("the session is over", () => !session.live);
    proxy.resume();
    await until("they stand in line again", async () => (await zk.ephemerals(path)).length === nodes);
    await Promise.all(holders.map((held) => held.release()));
    for (const held of await Promise.all(waiting.map((one) => one.then((lock) => lock.release().then(() => lock))))) {
      expect(held.session).toBe(zk.session);
    }
    expect(zk.session.id).not.toBe(session.id);
  });

  it("leaves no node if it is aborted before it knows whether it has one", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await clients.connect({}, proxy.address);
    const watcher = new Mutex(await clients.connect(), path);
    const semaphorePath = `${path}-semaphore`;
    const attempts = [
      (signal: AbortSignal) => new Mutex(zk, path).acquire({ signal }),
      (signal: AbortSignal) => new Semaphore(zk, semaphorePath, 1).acquire({ signal }),
      (signal: AbortSignal) => new DoubleBarrier(zk, `${path}-barrier`, 2).enter({ signal }),
    ];
    await (await new Mutex(zk, path).acquire()).release();
    await (await new Semaphore(zk, semaphorePath, 1).acquire()).release();
    for (const attempt of attempts) {
      const abort = new AbortController();
      const created = proxy.swallowReply(op.create2);
      const trying = attempt(abort.signal);
      const settled = expect(trying).rejects.toMatchObject({ code: "ABORTED" });
      await created;
      proxy.refuse();
      await until("it has no connection", () => zk.session.state === "suspended");
      abort.abort();
      await settled;
      proxy.accept();
    }
    await until("it is connected again", () => zk.session.state === "connected");
    const left = async () => [
      ...(await watcher.participants()),
      ...(await new Semaphore(zk, semaphorePath, 1).participants()),
      ...(await new Mutex(zk, `${semaphorePath}/locks`).participants()),
      ...(await namesUnder(zk, `${path}-barrier`)),
    ];
    await until("nothing is left", async () => (await left()).length === 0);
  });

  it("has one holder, increasing fences and finally an empty line despite broken connections and lost answers", async () => {
    const seed = Math.trunc(Math.random() * 2 ** 31);
    const random = randomFrom(seed);
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const mutexes: Mutex[] = [];
    for (let i = 0; i < 3; i++) mutexes.push(new Mutex(await clients.connect({}, proxy.address), path));
    const watcher = await clients.connect();
    const fences: bigint[] = [];
    const turns = 60;
    let begun = 0;
    let holders = 0;
    let most = 0;
    let working = true;
    const work = async (mutex: Mutex) => {
      while (begun < turns) {
        begun++;
        try {
          const held = await mutex.tryAcquire({ limitMs: random() < 0.2 ? random() * 20 : 60_000 });
          if (!held) continue;
          most = Math.max(most, ++holders);
          fences.push(held.fence);
          await new Promise((resolve) => setTimeout(resolve, random() * 10));
          holders--;
          if (held.held) await held.release();
        } catch (error) {
          if (!isZooKeeperError(error, "SESSION_EXPIRED", "NOT_HELD")) throw error;
        }
      }
    };
    const hurt = async () => {
      const replies = [op.create2, op.delete, op.getChildren2, op.getData];
      // The number of faults is limited: a client backs off after short-lived connections, and without a limit it might never progress.
      for (let faults = 0; working && faults < 40; faults++) {
        await new Promise((resolve) => setTimeout(resolve, 20 + random() * 60));
        if (random() < 0.5) proxy.reset();
        else void proxy.swallowReply(replies[Math.trunc(random() * replies.length)] ?? op.create2);
      }
    };
    const hurting = hurt();
    await Promise.all([...mutexes, ...mutexes].map(work)).finally(() => {
      working = false;
    });
    await hurting;
    expect({ seed, most, holders }).toEqual({ seed, most: 1, holders: 0 });
    expect(fences.length, `seed ${seed}`).toBeGreaterThan(turns / 3);
    for (const [index, fence] of fences.entries()) {
      if (index > 0) expect(fence > fences[index - 1]!, `seed ${seed}`).toBe(true);
    }
    await until(`the line is empty, seed ${seed}`, async () => {
      return (await new Mutex(watcher, path).participants()).length === 0;
    });
  });

  it("gives higher fences than ever after its servers lost their data", async () => {
    await using ensemble = await Ensemble.start();
    const zk = await clients.connect({ sessionTimeoutMs: endingSessionMs }, ensemble.connectString());
    const mutex = new Mutex(zk, "/locks/one");
    for (let i = 0; i < 5; i++) await (await mutex.acquire()).release();
    const held = await mutex.acquire();
    const waiting = mutex.acquire();
    await until("it waits", async () => (await mutex.participants()).length === 2);
    await ensemble.wipeAll();
    await until("it is lost", () => !held.held);
    const again = await waiting;
    expect(again.fence).toBeGreaterThan(held.fence);
    await again.release();
    const last = await mutex.acquire();
    expect(last.fence).toBeGreaterThan(again.fence);
  });
});
