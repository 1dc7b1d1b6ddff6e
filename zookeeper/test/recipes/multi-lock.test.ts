import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { MultiLock } from "../../src/recipes/locks/multi-lock.ts";
import { Mutex, revoke } from "../../src/recipes/locks/mutex.ts";
import { ReadWriteLock } from "../../src/recipes/locks/read-write-lock.ts";
import { Semaphore } from "../../src/recipes/locks/semaphore.ts";
import { ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

describe(`multi-lock on ${serverTitle()}`, () => {
  let clients: Clients;
  let zk: ZooKeeper;
  let path: string;
  beforeEach(async () => {
    clients = new Clients();
    zk = await clients.connect();
    path = ownPath("multi");
  });
  afterEach(() => clients.closeAll());

  const mutexes = (client: ZooKeeper) => ["a", "b", "c"].map((name) => new Mutex(client, `${path}/${name}`));
  const inLine = (mutex: Mutex, count: number) =>
    until(`${count} are in line`, async () => (await mutex.participants()).length === count);

  it("holds all locks or none, in the given order", async () => {
    const [a, b, c] = mutexes(zk) as [Mutex, Mutex, Mutex];
    const all = new MultiLock([a, b, c]);
    const blocking = await c.acquire();
    expect(await all.tryAcquire()).toBeUndefined();
    expect(await all.tryAcquire({ limitMs: 50 })).toBeUndefined();
    await Promise.all([inLine(a, 0), inLine(b, 0), inLine(c, 1)]);
    const waiting = all.acquire();
    await inLine(c, 2);
    expect(await a.tryAcquire()).toBeUndefined();
    await blocking.release();
    const held = await waiting;
    expect(held.parts.map((part) => part.path.slice(0, path.length + 2))).toEqual([
      `${path}/a`,
      `${path}/b`,
      `${path}/c`,
    ]);
    expect([held.held, held.signal.aborted, held.revocation.aborted]).toEqual([true, false, false]);
    expect(held.parts[2]!.fence).toBeGreaterThan(blocking.fence);
    await held.release();
    expect([held.held, held.signal.aborted]).toEqual([false, true]);
    await Promise.all([a, b, c].map((mutex) => inLine(mutex, 0)));
    await expect(held.release()).rejects.toMatchObject({ code: "NOT_HELD" });
  });

  it("can be aborted by its signal, and then leaves no node in any line", async () => {
    const [a, b, c] = mutexes(zk) as [Mutex, Mutex, Mutex];
    const blocking = await b.acquire();
    const stop = new AbortController();
    const waiting = new MultiLock([a, b, c]).acquire({ signal: stop.signal });
    await inLine(b, 2);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "ABORTED" });
    await Promise.all([inLine(a, 0), inLine(b, 1), inLine(c, 0)]);
    await blocking.release();
  });

  it("starts again if it loses one lock while it waits for another", async () => {
    const [a, b] = mutexes(zk) as [Mutex, Mutex, Mutex];
    const blocking = await b.acquire();
    const waiting = new MultiLock([a, b]).acquire();
    await inLine(b, 2);
    const [place] = await a.participants();
    await zk.delete(place!);
    await until("it has another place", async () => ![undefined, place].includes((await a.participants())[0]));
    await inLine(b, 2);
    await blocking.release();
    const held = await waiting;
    expect([held.held, held.parts.length]).toEqual([true, 2]);
    await held.release();
  });

  it("continues in the next session", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const far = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    const [, b] = mutexes(zk) as [Mutex, Mutex, Mutex];
    const blocking = await b.acquire();
    const { session } = far;
    const waiting = new MultiLock(mutexes(far)).acquire();
    await inLine(b, 2);
    proxy.pause();
    await until("the session is over", () => !session.live);
    proxy.resume();
    await blocking.release();
    const held = await waiting;
    expect(held.parts.every((part) => part.session === far.session)).toBe(true);
    await held.release();
  });

  it("is notified if one lock is lost or requested; the other locks stay until it is released", async () => {
    const [a, b] = mutexes(zk) as [Mutex, Mutex, Mutex];
    const held = await new MultiLock([a, b]).acquire();
    await revoke(zk, held.parts[1]!.path);
    await until("it is asked for", () => held.revocation.aborted);
    expect(held.held).toBe(true);
    await zk.delete(held.parts[0]!.path);
    await until("it is lost", () => held.signal.aborted);
    expect([held.held, held.parts[1]!.held]).toEqual([false, true]);
    await expect(held.release()).rejects.toMatchObject({ code: "NOT_HELD" });
    await inLine(b, 0);
  });

  it("combines different kinds of lock, and is reentrant for its owner", async () => {
    const owner = "me";
    const lock = new ReadWriteLock(zk, `${path}/lock`);
    const both = new MultiLock([lock.read, new Semaphore(zk, `${path}/leases`, 2)]);
    const [one, two] = [await both.acquire({ owner }), await both.acquire({ owner })];
    expect(one.parts[0]!.path).toBe(two.parts[0]!.path);
    expect(await both.tryAcquire({ owner })).toBeUndefined();
    await one.release();
    expect([one.held, two.held]).toEqual([false, true]);
    expect(await lock.write.tryAcquire()).toBeUndefined();
    await two.release();
    await using written = await lock.write.acquire();
    expect(written.held).toBe(true);
    expect(() => new MultiLock([])).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });
});
