import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { SharedCount } from "../../src/recipes/counters/shared-count.ts";
import { Semaphore } from "../../src/recipes/locks/semaphore.ts";
import { namesUnder } from "../support/names-under.ts";
import { ownPath, serverTitle } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

describe(`semaphore on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  let zk: ZooKeeper;
  beforeEach(async () => {
    clients = new Clients();
    path = ownPath("semaphore");
    zk = await clients.connect();
  });
  afterEach(() => clients.closeAll());

  const nodes = (semaphore: Semaphore, count: number) =>
    until(`there are ${count} nodes`, async () => (await semaphore.participants()).length === count);

  it("never gives more leases than its maximum", async () => {
    const semaphores = [new Semaphore(zk, path, 3), new Semaphore(await clients.connect(), path, 3)];
    let held = 0;
    let most = 0;
    const fences = new Set<bigint>();
    await Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        const lease = await semaphores[index % 2]!.acquire();
        fences.add(lease.fence);
        most = Math.max(most, ++held);
        await until("three hold it", () => most === 3);
        held--;
        await lease.release();
      }),
    );
    expect(most).toBe(3);
    expect(fences.size).toBe(30);
    expect(await semaphores[0]!.participants()).toEqual([]);
    expect(await namesUnder(zk, `${path}/locks`)).toEqual([]);
  });

  it("creates its nodes as Curator does", async () => {
    const semaphore = new Semaphore(zk, path, 1, { data: "me" });
    const lease = await semaphore.acquire();
    expect(lease.path).toMatch(new RegExp(`^${path}/leases/_c_[0-9a-f-]{36}-lease-0000000000$`));
    expect((await zk.get(lease.path)).data.toString()).toBe("me");
    expect((await zk.children(path)).names.sort()).toEqual(["leases", "locks"]);
    await lease.release();
    await expect(lease.release()).rejects.toMatchObject({ code: "NOT_HELD", path: lease.path });
  });

  it("gives several leases at once, or none", async () => {
    const semaphore = new Semaphore(zk, path, 3);
    const other = new Semaphore(await clients.connect(), path, 3);
    const two = await semaphore.acquireMany(2);
    expect(two).toHaveLength(2);
    expect(await other.tryAcquireMany(2)).toBeUndefined();
    expect(await other.tryAcquireMany(2, { limitMs: 100 })).toBeUndefined();
    await nodes(semaphore, 2);
    const one = await other.tryAcquire();
    expect(one?.held).toBe(true);
    const waiting = other.acquireMany(3);
    await nodes(semaphore, 6);
    for (const lease of [...two, one!]) await lease.release();
    expect((await waiting).map(({ held }) => held)).toEqual([true, true, true]);
    await expect(semaphore.acquireMany(4)).rejects.toMatchObject({ code: "OPTION_INVALID", path });
    await expect(semaphore.acquireMany(0)).rejects.toMatchObject({ code: "OPTION_INVALID", path });
    expect(() => new Semaphore(zk, path, -1)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });

  it("follows a shared count", async () => {
    const countPath = `${path}-count`;
    const semaphore = new Semaphore(zk, path, { countPath, seed: 1 });
    const leases = [await semaphore.acquire()];
    expect(await semaphore.tryAcquire()).toBeUndefined();
    const waiting = semaphore.acquire();
    await nodes(semaphore, 2);
    const count = new SharedCount(await clients.connect(), countPath, 2);
    await count.start();
    leases.push(await waiting);
    const next = semaphore.acquire();
    await nodes(semaphore, 3);
    await count.set(3);
    leases.push(await next);
    await count.set(1);
    for (const lease of leases.splice(1)) await lease.release();
    expect(await semaphore.tryAcquire()).toBeUndefined();
    await zk.set(countPath, "plenty");
    await expect(semaphore.acquire()).rejects.toMatchObject({ code: "DATA_INVALID", path: countPath });
    await nodes(semaphore, 1);
    await count.close();
  });

  it("frees aborted and lost leases", async () => {
    const semaphore = new Semaphore(zk, path, 1);
    const lease = await semaphore.acquire();
    const abort = new AbortController();
    const waiting = semaphore.acquire({ signal: abort.signal });
    await nodes(semaphore, 2);
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: "ABORTED" });
    await nodes(semaphore, 1);
    const lost = new Promise((resolve) => lease.signal.addEventListener("abort", resolve, { once: true }));
    await zk.delete(lease.path);
    await lost;
    expect(lease.held).toBe(false);

    const mortal = await clients.connect();
    const doomed = await new Semaphore(mortal, path, 1).acquire();
    const doomedWaiting = new Semaphore(mortal, path, 1).acquire();
    const settled = expect(doomedWaiting).rejects.toMatchObject({ code: "CLOSED" });
    await nodes(semaphore, 2);
    const next = semaphore.acquire();
    await mortal.close();
    await settled;
    expect(doomed.held).toBe(false);
    expect((await next).held).toBe(true);
  });

  it("puts a waiter whose node was deleted at the end of the line", async () => {
    const semaphore = new Semaphore(zk, path, 1);
    const lease = await semaphore.acquire();
    const waiting = semaphore.acquire();
    await nodes(semaphore, 2);
    const before = (await semaphore.participants())[1]!;
    await zk.delete(before);
    await until("there is another", async () => {
      const all = await semaphore.participants();
      return all.length === 2 && all[1] !== before;
    });
    await lease.release();
    expect((await waiting).path).not.toBe(before);
  });
});
