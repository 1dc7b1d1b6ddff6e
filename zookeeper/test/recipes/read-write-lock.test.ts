import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { ReadWriteLock } from "../../src/recipes/locks/read-write-lock.ts";
import { namesUnder } from "../support/names-under.ts";
import { ownPath, serverTitle } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

describe(`read-write lock on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  let zk: ZooKeeper;
  let lock: ReadWriteLock;
  let other: ReadWriteLock;
  beforeEach(async () => {
    clients = new Clients();
    path = ownPath("read-write");
    zk = await clients.connect();
    lock = new ReadWriteLock(zk, path);
    other = new ReadWriteLock(await clients.connect(), path);
  });
  afterEach(() => clients.closeAll());

  const inLine = (count: number) =>
    until(`${count} are in line`, async () => (await zk.children(path)).names.length === count);

  it("has many readers or one writer, in line order", async () => {
    const told: string[] = [];
    const readers = [await lock.read.acquire(), await other.read.acquire()];
    expect(readers[0]?.path).toMatch(/-__READ__0000000000$/);
    expect(await lock.write.tryAcquire()).toBeUndefined();
    const writing = other.write.acquire().then((held) => {
      told.push("writer");
      return held;
    });
    await inLine(3);
    const late = [lock, other].map(async ({ read }) => {
      const held = await read.acquire();
      told.push("late reader");
      return held;
    });
    await inLine(5);
    expect(await lock.read.tryAcquire()).toBeUndefined();
    for (const one of readers) await one.release();
    const writer = await writing;
    expect(writer.path).toMatch(/-__WRIT__\d{10}$/);
    expect(told).toEqual(["writer"]);
    expect(await lock.read.participants()).toHaveLength(2);
    expect(await lock.write.participants()).toEqual([writer.path]);
    await writer.release();
    const [one, two] = await Promise.all(late);
    expect(one?.held && two?.held).toBe(true);
    expect([writer.fence > readers[1]!.fence, one!.fence > writer.fence]).toEqual([true, true]);
    await one?.release();
    await two?.release();
    expect(await namesUnder(zk, path)).toEqual([]);
  });

  it("wakes a waiting writer only when the last reader before it has gone", async () => {
    const readers = [await lock.read.acquire(), await other.read.acquire(), await lock.read.acquire()];
    const writing = other.write.acquire();
    await inLine(4);
    await readers[2]!.release();
    await readers[0]!.release();
    await inLine(2);
    expect(await Promise.race([writing, other.read.participants()])).toEqual([readers[1]!.path]);
    await readers[1]!.release();
    expect((await writing).held).toBe(true);
  });

  it("lets a writer continue as a reader, beside other readers", async () => {
    const owner = "me";
    const writer = await lock.write.acquire({ owner });
    const again = await lock.write.acquire({ owner });
    const reader = await lock.read.acquire({ owner });
    expect(reader.fence).toBe(writer.fence);
    expect(await lock.read.tryAcquire({ owner: "you" })).toBeUndefined();
    await again.release();
    const waiting = other.read.acquire();
    await inLine(3);
    await writer.release();
    expect((await waiting).held).toBe(true);
    expect(reader.held).toBe(true);
    expect(await lock.write.participants()).toEqual([]);
    await expect(lock.write.acquire({ owner })).rejects.toMatchObject({ code: "OPTION_INVALID", path });
    await reader.release();
  });

  it("admits no waiting writer beside a writer that continued as a reader", async () => {
    const owner = "me";
    for (const end of ["release", "lost"]) {
      const writer = await lock.write.acquire({ owner });
      let entered = false;
      const waiting = other.write.acquire().then((held) => {
        entered = true;
        return held;
      });
      await inLine(2);
      const reader = await lock.read.acquire({ owner });
      await writer.release();
      expect(writer.held).toBe(false);
      expect(writer.signal.aborted).toBe(true);
      await expect(writer.release()).rejects.toMatchObject({ code: "NOT_HELD" });
      await zk.sync(path);
      await zk.sync(path);
      expect(entered).toBe(false);
      expect((await zk.children(path)).names).toHaveLength(3);
      if (end === "release") await reader.release();
      else await zk.delete(reader.path);
      const next = await waiting;
      expect(reader.held).toBe(false);
      expect(next.fence).toBeGreaterThan(reader.fence);
      await next.release();
      await inLine(0);
    }
  });
});
