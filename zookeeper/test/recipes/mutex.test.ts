import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { fenceOf } from "../../src/recipes/base/fence.ts";
import type { Held } from "../../src/recipes/locks/hold.ts";
import { Mutex, revoke } from "../../src/recipes/locks/mutex.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { namesUnder } from "../support/names-under.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

describe(`mutex on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  beforeEach(() => {
    clients = new Clients();
    path = ownPath("mutex");
  });
  afterEach(() => clients.closeAll());

  const inLine = (mutex: Mutex, count: number) =>
    until(`${count} are in line`, async () => (await mutex.participants()).length === count);

  it("is held by one client after the other, in line order, with increasing fences", async () => {
    const mutexes: Mutex[] = [];
    for (let i = 0; i < 3; i++) mutexes.push(new Mutex(await clients.connect(), path));
    const told: number[] = [];
    const fences: bigint[] = [];
    let inside = 0;
    const running: Promise<void>[] = [];
    for (const [index, mutex] of mutexes.entries()) {
      const run = async () => {
        const held = await mutex.acquire();
        expect(++inside).toBe(1);
        told.push(index);
        fences.push(held.fence);
        expect((await mutex.participants())[0]).toBe(held.path);
        expect(held.held).toBe(true);
        if (index === 0) await inLine(mutex, 3);
        inside--;
        await held.release();
        expect(held.held).toBe(false);
        expect(held.signal.reason).toMatchObject({ code: "NOT_HELD" });
      };
      running.push(run());
      await until("it is in line", async () => (await mutex.participants()).length + told.length > index);
    }
    await Promise.all(running);
    expect(told).toEqual([0, 1, 2]);
    expect(fences[1]).toBeGreaterThan(fences[0]!);
    expect(fences[2]).toBeGreaterThan(fences[1]!);
    expect(await mutexes[0]!.participants()).toEqual([]);
  });

  it("creates its nodes as Curator does", async () => {
    const zk = await clients.connect();
    const held = await new Mutex(zk, path).acquire();
    expect(held.path).toMatch(new RegExp(`^${path}/_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-0000000000$`));
    const { data, stat } = await zk.get(held.path);
    expect(data.toString()).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    expect(stat.ephemeralOwner).toBe(held.session.id);
    expect(held.fence).toBe(await fenceOf(held.session, { path, acl: undefined }, stat.czxid));
    await held.release();
    await until("the server removes the empty container", async () => !(await zk.exists(path)));
    const again = await new Mutex(zk, path, { data: "me" }).acquire();
    expect((await zk.get(again.path)).data.toString()).toBe("me");
  });

  it("is reentrant for its owner, and is released as often as it was acquired", async () => {
    const mutex = new Mutex(await clients.connect(), path);
    const owner = {};
    const [first, second] = await Promise.all([mutex.acquire({ owner }), mutex.acquire({ owner })]);
    const third = await mutex.tryAcquire({ owner });
    expect(new Set([first, second, third].map((held) => held?.path)).size).toBe(1);
    expect(third?.fence).toBe(first.fence);
    expect(await mutex.tryAcquire({ owner: {} })).toBeUndefined();
    expect(await mutex.tryAcquire()).toBeUndefined();
    await second.release();
    await expect(second.release()).rejects.toMatchObject({ code: "NOT_HELD", path: first.path });
    expect(first.held && third?.held).toBe(true);
    expect(first.signal.aborted).toBe(false);
    await first.release();
    expect(mutex.heldBy(owner)).toBe(true);
    await third?.release();
    expect(mutex.heldBy(owner)).toBe(false);
    expect(first.signal.aborted).toBe(true);
    expect(await mutex.participants()).toEqual([]);
    const anew = await mutex.acquire({ owner });
    expect(anew.fence).toBeGreaterThan(first.fence);
  });

  it("a waiter that ends by limit or signal leaves neither node nor watch", async () => {
    await using ensemble = await Ensemble.start();
    const zk = await clients.connect({}, ensemble.connectString());
    const mutex = new Mutex(zk, path);
    const held = await mutex.acquire();
    const other = new Mutex(await clients.connect({}, ensemble.connectString()), path);
    const watchers = async () => (await ensemble.server.watched()).get(held.path)?.length;
    expect(await watchers()).toBe(1);

    expect(await other.tryAcquire({ limitMs: 100 })).toBeUndefined();
    await inLine(mutex, 1);
    const abort = new AbortController();
    const waiting = [other.acquire({ signal: abort.signal }), mutex.acquire({ signal: abort.signal })];
    await inLine(mutex, 3);
    abort.abort(new Error("enough"));
    for (const one of waiting) await expect(one).rejects.toMatchObject({ code: "ABORTED" });
    await inLine(mutex, 1);
    await until("the watch of the other client is gone", async () => (await watchers()) === 1);

    expect(held.held).toBe(true);
    await expect(mutex.acquire({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "ABORTED" });
    await expect(mutex.tryAcquire({ limitMs: -1 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await held.release();
    await until("no watch is left", async () => (await ensemble.server.watched()).size === 0);
  });

  it("can be requested from its holder, in a way that works for every program", async () => {
    const zk = await clients.connect();
    const mutex = new Mutex(zk, path);
    const held = await mutex.acquire();
    const next = mutex.acquire();
    await inLine(mutex, 2);
    await zk.set(held.path, "a label");
    const asked = new Promise((resolve) => held.revocation.addEventListener("abort", resolve, { once: true }));
    expect(await revoke(zk, held.path)).toBe(true);
    await asked;
    expect(held.held).toBe(true);
    await held.release();
    expect(await revoke(zk, held.path)).toBe(false);
    expect((await next).revocation.aborted).toBe(false);
    const later = mutex.acquire();
    await inLine(mutex, 2);
    await revoke(zk, (await mutex.participants())[1]!);
    await (await next).release();
    expect((await later).revocation.aborted).toBe(true);
  });

  it("is lost if its node is deleted, and a waiter whose node is deleted queues again", async () => {
    const zk = await clients.connect();
    const mutex = new Mutex(await clients.connect(), path);
    const held = await mutex.acquire();
    const lost = new Promise((resolve) => held.signal.addEventListener("abort", resolve, { once: true }));
    const next = mutex.acquire();
    await inLine(mutex, 2);
    await zk.delete((await mutex.participants())[1]!);
    await zk.delete(held.path);
    await lost;
    expect(held.held).toBe(false);
    const nextHeld = await next;
    expect(nextHeld.fence).toBeGreaterThan(held.fence);
    await expect(held.release()).rejects.toMatchObject({ code: "NOT_HELD", path: held.path });
    expect(nextHeld.held).toBe(true);
    expect(await mutex.participants()).toEqual([nextHeld.path]);
  });

  it("ends with its session, for holders and waiters", async () => {
    const zk = await clients.connect();
    const mutex = new Mutex(zk, path);
    const held = await mutex.acquire();
    const waiting = mutex.acquire();
    await inLine(mutex, 2);
    const other = new Mutex(await clients.connect(), path);
    const settled = expect(waiting).rejects.toMatchObject({ code: "CLOSED" });
    await zk.close();
    await settled;
    expect(held.held).toBe(false);
    expect(held.signal.aborted).toBe(true);
    await expect(held.release()).rejects.toMatchObject({ code: "NOT_HELD" });
    await held[Symbol.asyncDispose]();
    expect((await other.acquire()).fence).toBeGreaterThan(held.fence);
  });

  it("never has two nodes for one acquisition if the answer to its creation is lost", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await clients.connect({}, proxy.address);
    const mutex = new Mutex(zk, path);
    await (await mutex.acquire()).release();
    const swallowed = proxy.swallowReply(op.create2);
    const acquiring = mutex.acquire();
    await swallowed;
    const held = await acquiring;
    expect(await mutex.participants()).toEqual([held.path]);
    await held.release();
    expect(await mutex.participants()).toEqual([]);
  });

  it("does not belong to a new session, which waits until the old session's node is gone", async () => {
    await using ensemble = await Ensemble.start();
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    const zk = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    const mutex = new Mutex(zk, path);
    const held = await mutex.acquire();
    const old = zk.session;
    proxy.refuse();
    proxy.reset();
    await until("its belief ends before the server's", () => !held.held);
    await expect(held.release()).rejects.toMatchObject({ code: "NOT_HELD" });
    proxy.accept();
    const again = await mutex.acquire();
    expect(again.session).not.toBe(old);
    expect(again.fence).toBeGreaterThan(held.fence);
    expect(await mutex.participants()).toEqual([again.path]);
  });

  it("refuses invalid lock paths", async () => {
    const zk = await clients.connect();
    for (const bad of ["/", "lock", "/lock/", "/a//b"]) {
      expect(() => new Mutex(zk, bad)).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
    }
    await expect(new Mutex(zk, path, { acl: [] }).acquire()).rejects.toMatchObject({ code: "INVALID_ACL" });
  });
});

describe("many waiters for one mutex", () => {
  it("each release wakes one waiter, at constant cost for the server", async () => {
    const crowd = 1_000;
    await using ensemble = await Ensemble.start();
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    const clients = new Clients(proxy.address);
    try {
      const all: ZooKeeper[] = [];
      for (let i = 0; i < 10; i++) all.push(await clients.connect({ sessionTimeoutMs: 60_000 }));
      const mutexes = all.map((zk) => new Mutex(zk, "/crowd"));
      const first = await mutexes[0]!.acquire();
      const turns: Held[] = [];
      let holders = 0;
      let most = 0;
      let finished = 0;
      const running = Array.from({ length: crowd }, async (_, index) => {
        const held = await mutexes[index % mutexes.length]!.acquire();
        turns.push(held);
        most = Math.max(most, ++holders);
        await new Promise((resolve) => setImmediate(resolve));
        holders--;
        await held.release();
        finished++;
      });
      await until("all are in line", async () => (await all[0]!.exists("/crowd"))?.childCount === crowd + 1);
      await until("all watch the one before", async () => (await ensemble.server.watched()).size === crowd);
      const before = count(proxy);
      await first.release();
      await Promise.all(running);
      expect({ finished, most }).toEqual({ finished: crowd, most: 1 });
      for (const [index, held] of turns.entries()) {
        if (index > 0) expect(held.fence > turns[index - 1]!.fence).toBe(true);
      }
      const after = count(proxy);
      // Each contender sends these requests when its turn comes: it lists the queue, reads its own node and the fence's base, and later
      // deletes its node.
      expect(after.lists - before.lists).toBe(crowd);
      expect(after.gets - before.gets).toBe(2 * crowd);
      expect(after.deletes - before.deletes).toBe(crowd + 1);
      expect((await ensemble.server.watched()).size).toBe(0);
      expect(await namesUnder(all[0]!, "/crowd")).toEqual([]);
    } finally {
      await clients.closeAll();
    }
  });
});

function count(proxy: ZooKeeperProxy): { lists: number; gets: number; deletes: number } {
  return {
    lists: proxy.requests(op.getChildren2) + proxy.requests(op.getChildren),
    gets: proxy.requests(op.getData),
    deletes: proxy.requests(op.delete),
  };
}
