/** Tests that apply only to ZooKeeper's grace lock. scheduler/test/conformance/grace-lock.test.ts tests both drivers. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { creatorAcl } from "../../src/operations/acl.ts";
import type { ZooKeeper } from "../../src/operations/session.ts";
import type { GraceLock, GraceLockOptions } from "../../src/recipes/grace-lock/grace-lock.ts";
import { graceLock } from "../../src/recipes/grace-lock/nodes.ts";
import type { Use } from "../../src/recipes/grace-lock/use.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

const longMs = 60_000;

describe(`grace lock on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  const proxies: ZooKeeperProxy[] = [];
  const locks: GraceLock[] = [];
  beforeEach(() => {
    clients = new Clients();
    path = ownPath("grace");
  });
  afterEach(async () => {
    for (const proxy of proxies) {
      proxy.accept();
      proxy.resume();
    }
    await Promise.all(locks.splice(0).map((lock) => lock.close().catch(() => undefined))); // `close` rejects where the node is unreadable
    await clients.closeAll();
    await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  });

  const contend = (client: ZooKeeper, owner: string, options: Partial<GraceLockOptions> = {}): GraceLock => {
    const lock = graceLock(client, path, { owner, graceMs: longMs, ...options });
    locks.push(lock);
    return lock;
  };
  async function through(owner: string, options: Partial<GraceLockOptions> = {}) {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    proxies.push(proxy);
    const client = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    return { proxy, client, lock: contend(client, owner, options) };
  }
  const mine = async (lock: GraceLock): Promise<Use> => {
    const use = await lock.tryLock();
    if (!use) throw new Error(`${lock.owner} did not get it`);
    return use;
  };

  it("keeps one persistent record, and one ephemeral holder node of the session", async () => {
    const client = await clients.connect();
    const lock = contend(client, "a");
    const use = await mine(lock);
    const holder = await client.get(`${path}/holder`);
    expect([holder.stat.ephemeralOwner, holder.stat.czxid]).toEqual([client.session.id, use.fence]);
    const record = await client.get(path);
    expect([record.stat.ephemeralOwner, JSON.parse(record.data.toString())]).toMatchObject([
      0n,
      { owner: "a", released: false, graceMs: longMs, use: { owner: "a", fence: String(use.fence), endedMs: null } },
    ]);
    await lock.release();
    expect(await client.exists(`${path}/holder`)).toBeUndefined();
    expect(JSON.parse((await client.get(path)).data.toString())).toMatchObject({ released: true });
  });

  it("creates missing parent paths, and is created again after its record was deleted by hand", async () => {
    path = `${path}/of/some/team`;
    const client = await clients.connect();
    const lock = contend(client, "a");
    const first = await mine(lock);
    await lock.release();
    await client.delete(path);
    expect((await mine(lock)).fence).toBeGreaterThan(first.fence);
  });

  for (const [what, act] of [
    ["take", (lock: GraceLock) => lock.tryLock()],
    ["release", (lock: GraceLock) => lock.release()],
  ] as const) {
    it(`the result of a ${what} is found out if its answer was lost or cut in the middle`, async () => {
      const { proxy, lock } = await through("a");
      await mine(lock);
      if (what === "take") await lock.release();
      for (const aftermath of ["reset", { bytes: 10 }] as const) {
        const swallowed = proxy.swallowReply(op.multi, aftermath);
        expect(await act(lock)).toBeTruthy();
        await swallowed;
        if (what === "take") await lock.release();
        else await mine(lock);
      }
    });
  }

  it("if its session is lost while idle, it steps back, and gets the lock first on request", async () => {
    const { proxy, lock, client } = await through("a");
    const use = await mine(lock);
    await use.end();
    proxy.pause();
    await until("the session is over", () => lock.state === "WAITING");
    expect(client.session.live).toBe(false);
    proxy.resume();
    await until("there is a new session", () => client.session.live);
    const again = await mine(lock);
    expect(again.fence).toBeGreaterThan(use.fence);
    expect(again.takenOver).toBeUndefined();
  });

  it("if its session is lost during a use, it gets the lock back in the next, and never stops believing", async () => {
    const { proxy, lock, client } = await through("a");
    const other = contend(await clients.connect(), "b");
    const use = await mine(lock);
    const first = use.fence;
    const session = client.session;
    expect(await other.tryLock()).toBeUndefined();
    proxy.pause();
    await until("the session is over", () => !session.live);
    expect([use.held, lock.fence]).toEqual([true, undefined]);
    await until("the servers think so too", () => other.state === "WAITING");
    proxy.resume();
    await until("it has a new fence", () => use.fence > first);
    expect([use.held, lock.fence, use.signal.aborted]).toEqual([true, use.fence, false]);
    await until("the other sees it", () => other.state === "RELEASED");
  });

  it("a use that ended while cut off is recorded once the connection is back", async () => {
    const { proxy, lock, client } = await through("a");
    const use = await mine(lock);
    const session = client.session;
    proxy.pause();
    await until("the session is over", () => !session.live);
    const ending = use.end();
    proxy.resume();
    expect(await ending).toBe(true);
    expect(await lock.lastUse()).toMatchObject({ owner: "a", endedMs: expect.any(Number) });
  });

  it("an aborted read of the last use removes no other watch", async () => {
    const held = contend(await clients.connect(), "a");
    await mine(held);
    const { proxy, lock } = await through("b");
    proxy.pause();
    const stop = new AbortController();
    const look = lock.lastUse({ signal: stop.signal });
    const waiting = lock.lock();
    await new Promise((resolve) => setImmediate(resolve)); // now all requests have been sent
    stop.abort();
    await expect(look).rejects.toMatchObject({ code: "ABORTED" });
    await expect(lock.lastUse({ signal: stop.signal })).rejects.toMatchObject({ code: "ABORTED" });
    proxy.resume();
    await until("it waits", () => lock.state === "RELEASED");
    await held.release();
    expect((await waiting).held).toBe(true);
  });

  it("closing one lock does not remove the watch of another lock of the same client", async () => {
    const held = contend(await clients.connect(), "a");
    await mine(held);
    const client = await clients.connect();
    const [stays, goes] = [contend(client, "b"), contend(client, "c")];
    expect(await goes.tryLock()).toBeUndefined();
    const waiting = stays.lock();
    await until("it waits", () => stays.state === "RELEASED");
    await goes.close();
    await held.release();
    expect((await waiting).held).toBe(true);
  });

  it("with a grace of 0 the use ends with the session, and other contenders do not wait", async () => {
    const { proxy, lock } = await through("a", { graceMs: 0 });
    const other = contend(await clients.connect(), "b", { graceMs: 0 });
    const use = await mine(lock);
    const waiting = other.lock();
    proxy.pause();
    await waiting;
    expect(use.held).toBe(false);
    await until("it is told", () => use.signal.aborted);
  });

  it("refuses invalid paths and options with the reason", async () => {
    const client = await clients.connect();
    expect(() => graceLock(client, "/", { owner: "a" })).toThrow(/cannot be at \//);
    expect(() => graceLock(client, "/a/", { owner: "a" })).toThrow(/slash/);
    await client.create(path, "shopping list");
    await expect(contend(client, "a").tryLock()).rejects.toMatchObject({ code: "DATA_INVALID", path });
    await client.set(path, "");
    const use = await mine(contend(client, "b"));
    expect(use.held).toBe(true);
    await client.set(path, "{}");
    expect(await use.end()).toBe(true); // the holder overwrites the record that a person has edited
    await client.delete(`${path}/holder`);
  });

  it("does not keep a lock whose fence it cannot determine", async () => {
    const client = await clients.connect();
    await client.create(`${path}-fence`, "about ten");
    await expect(contend(client, "a").tryLock()).rejects.toMatchObject({ code: "DATA_INVALID", path: `${path}-fence` });
    expect(await client.exists(`${path}/holder`)).toBeUndefined();
    await client.set(`${path}-fence`, "1000000000000");
    expect((await mine(contend(client, "b"))).fence).toBeGreaterThan(1_000_000_000_000n);
  });

  it("reports missing permissions", async () => {
    const owner = await clients.connect();
    await owner.addAuth("digest", "ann:secret");
    await owner.create(path, "", { acl: creatorAcl });
    const lock = contend(await clients.connect(), "a");
    await expect(lock.tryLock()).rejects.toMatchObject({ code: "NO_AUTH" });
  });

  it("after its data was wiped, fences still increase, and no contender takes a held lock", async () => {
    await using ensemble = await Ensemble.start();
    const wiped = new Clients(ensemble.connectString());
    try {
      const [a, b] = [
        await wiped.connect({ sessionTimeoutMs: endingSessionMs }),
        await wiped.connect({ sessionTimeoutMs: endingSessionMs }),
      ];
      for (let i = 0; i < 50; i++) await a.create("/filler-", "", { sequential: true });
      const [first, second] = [contend(a, "a"), contend(b, "b", { graceMs: 500 })];
      const use = await mine(first);
      const before = use.fence;
      expect(await second.tryLock()).toBeUndefined();
      await ensemble.wipeAll();
      await until("it was taken back, or given up", () => use.fence > before || use.signal.aborted);
      await use.end();
      await first.release();
      const next = await second.lock();
      expect(next.fence).toBeGreaterThan(use.fence);
      expect(next.fence).toBeGreaterThan(before);
    } finally {
      await Promise.all(locks.splice(0).map((lock) => lock.close()));
      await wiped.closeAll();
    }
  });

  it("survives a restart of the servers within its session", async () => {
    await using ensemble = await Ensemble.start();
    const restarted = new Clients(ensemble.connectString());
    try {
      const lock = contend(await restarted.connect({ sessionTimeoutMs: 20_000 }), "a");
      const use = await mine(lock);
      const { fence } = use;
      await ensemble.server.restart();
      expect(await use.note("still here")).toBe(true);
      expect([use.fence, use.held]).toEqual([fence, true]);
      await lock.close();
    } finally {
      await restarted.closeAll();
    }
  });
});
