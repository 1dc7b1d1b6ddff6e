import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Leadership } from "../../src/recipes/leader/latch.ts";
import { LeaderLatch } from "../../src/recipes/leader/latch.ts";
import { namesUnder } from "../support/names-under.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

describe(`leader latch on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  beforeEach(() => {
    clients = new Clients();
    path = ownPath("latch");
  });
  afterEach(() => clients.closeAll());

  async function latch(id: string, zk?: Awaited<ReturnType<Clients["connect"]>>) {
    const made = new LeaderLatch(zk ?? (await clients.connect()), path, { id });
    const told: string[] = [];
    made.listen({ isLeader: () => told.push("isLeader"), notLeader: () => told.push("notLeader") });
    return { latch: made, told };
  }

  it("gives leadership to one member after the other, in line order", async () => {
    const all: Awaited<ReturnType<typeof latch>>[] = [];
    for (const id of ["a", "b", "c"]) {
      const one = await latch(id);
      expect(one.latch.state).toBe("latent");
      await one.latch.start();
      expect(one.latch.state).toBe("started");
      all.push(one);
    }
    expect(await all[2]!.latch.participants()).toEqual([
      { id: "a", leader: true },
      { id: "b", leader: false },
      { id: "c", leader: false },
    ]);
    expect(await all[2]!.latch.leader()).toEqual({ id: "a", leader: true });
    const fences: bigint[] = [];
    for (const [index, { latch: one, told }] of all.entries()) {
      const leadership = await one.awaitLeadership({ limitMs: 60_000 });
      expect(one.hasLeadership).toBe(true);
      expect(all.filter(({ latch: other }) => other.hasLeadership).length).toBe(1);
      fences.push(leadership!.fence);
      expect(leadership!.signal.aborted).toBe(false);
      await one.close(index === 1 ? "notify_leader" : "silent");
      expect(leadership!.signal.reason).toMatchObject({ code: "NOT_HELD" });
      expect(one.hasLeadership).toBe(false);
      expect(one.state).toBe("closed");
      expect(told).toEqual(index === 1 ? ["isLeader", "notLeader"] : ["isLeader"]);
    }
    expect(fences).toEqual([...fences].sort((a, b) => (a < b ? -1 : 1)));
    expect(new Set(fences).size).toBe(3);
    expect(await all[0]!.latch.participants()).toEqual([]);
    expect(await all[0]!.latch.leader()).toBeUndefined();
  });

  it("creates its nodes as Curator does", async () => {
    const { latch: one } = await latch("läufer-1");
    await one.start();
    const zk = await clients.connect();
    const { names } = await zk.children(path);
    expect(names).toEqual([expect.stringMatching(/^_c_[0-9a-f-]{36}-latch-\d{10}$/)]);
    const { data, stat } = await zk.get(`${path}/${names[0]}`);
    expect(data.toString("utf8")).toBe("läufer-1");
    expect(stat.ephemeralOwner).not.toBe(0n);
    await one.close();
    expect(await namesUnder(zk, path)).toEqual([]);
    await until("the parent, a container, has gone", async () => (await zk.exists(path)) === undefined);
  });

  it("waits for leadership with a limit and a signal, and no longer than until it is closed", async () => {
    const first = await latch("first");
    const second = await latch("second");
    await first.latch.start();
    await second.latch.start();
    expect(await second.latch.awaitLeadership({ limitMs: 5 })).toBeUndefined();
    await expect(second.latch.awaitLeadership({ signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: "ABORTED",
    });
    const control = new AbortController();
    const waiting = second.latch.awaitLeadership({ signal: control.signal });
    control.abort();
    await expect(waiting).rejects.toMatchObject({ code: "ABORTED" });
    const cut = second.latch.awaitLeadership();
    const closed = second.latch.close();
    await expect(cut).rejects.toMatchObject({ code: "CLOSED", path });
    await closed;
    await expect(second.latch.awaitLeadership()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(second.latch.start()).rejects.toMatchObject({ code: "CLOSED" });
    expect(await first.latch.awaitLeadership()).toMatchObject({ fence: expect.any(BigInt) });
    expect((await first.latch.participants()).map(({ id }) => id)).toEqual(["first"]);
  });

  it("passes on leadership until each member has led once", async () => {
    const all = await Promise.all(Array.from({ length: 10 }, (_, index) => latch(String(index))));
    await Promise.all(all.map(({ latch: one }) => one.start()));
    let tell: (index: number) => void = () => undefined;
    for (const [index, { latch: one }] of all.entries()) one.listen({ isLeader: () => tell(index) });
    const led = new Set<number>();
    let leader = await new Promise<number>((resolve) => {
      tell = resolve;
      const at = all.findIndex(({ latch: one }) => one.hasLeadership);
      if (at >= 0) resolve(at);
    });
    for (;;) {
      led.add(leader);
      if (led.size === all.length) break;
      const next = new Promise<number>((resolve) => {
        tell = resolve;
      });
      const closing = all[leader]!.latch.close();
      leader = await next;
      await closing;
    }
    expect(all.map(({ told }) => told)).toEqual(all.map(() => ["isLeader"]));
  });

  it("watches only its predecessor: a member that leaves within the line wakes one other", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      const first = await latch("first");
      const second = await latch("second");
      const client = await clients.connect({}, proxy.address);
      const third = await latch("third", client);
      const fourth = await latch("fourth");
      for (const one of [first, second, third, fourth]) await one.latch.start();
      await first.latch.awaitLeadership();
      const looked = proxy.requests(op.getChildren) + proxy.requests(op.getChildren2);
      await fourth.latch.close();
      const lists = () => proxy.requests(op.getChildren) + proxy.requests(op.getChildren2) - looked;
      const watches = () => proxy.requests(op.getData) + proxy.requests(op.exists);
      const watched = watches();
      await second.latch.close();
      await until("the third looked again, and watches the first", () => lists() > 0 && watches() > watched);
      await client.sync(path); // answered after both requests
      await first.latch.close();
      await third.latch.awaitLeadership();
      expect(lists()).toBe(2);
    } finally {
      await proxy.close();
    }
  });

  it("ends leadership at once if the connection is in doubt, and resumes it with the same fence", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      const { latch: one, told } = await latch("one", await clients.connect({}, proxy.address));
      await one.start();
      const before = (await one.awaitLeadership()) as Leadership;
      proxy.reset();
      await until("it heard of it", () => before.signal.aborted);
      const after = await one.awaitLeadership({ limitMs: 60_000 });
      expect(after?.fence).toBe(before.fence);
      expect(told).toEqual(["isLeader", "notLeader", "isLeader"]);
    } finally {
      await proxy.close();
    }
  });

  it("is in line with only one node if the answer to its creation is lost", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      const { latch: one } = await latch("one", await clients.connect({}, proxy.address));
      const other = await latch("other");
      await other.latch.start(); // creates the parent
      const swallowed = proxy.swallowReply(op.create2);
      await one.start();
      await swallowed;
      expect((await one.participants()).map(({ id }) => id)).toEqual(["other", "one"]);
      await other.latch.close();
      expect(await one.awaitLeadership({ limitMs: 60_000 })).toBeDefined();
      await one.close();
      expect(await one.participants()).toEqual([]);
    } finally {
      await proxy.close();
    }
  });

  it("queues again in a new session, behind members that came meanwhile", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      const one = await latch("one", await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address));
      await one.latch.start();
      const before = (await one.latch.awaitLeadership()) as Leadership;
      const two = await latch("two");
      await two.latch.start();
      proxy.refuse();
      proxy.reset();
      const leadership = (await two.latch.awaitLeadership({ limitMs: 60_000 })) as Leadership;
      expect(before.signal.aborted).toBe(true);
      expect(one.latch.hasLeadership).toBe(false);
      expect(leadership.fence).toBeGreaterThan(before.fence);
      proxy.accept();
      await until("it is in line again", async () => (await two.latch.participants()).length === 2);
      expect((await two.latch.participants()).map(({ id }) => id)).toEqual(["two", "one"]);
      await two.latch.close();
      const again = (await one.latch.awaitLeadership({ limitMs: 60_000 })) as Leadership;
      expect(again.fence).toBeGreaterThan(leadership.fence);
    } finally {
      await proxy.close();
    }
  });

  it("loses leadership and queues again if the leader's node is deleted", async () => {
    const one = await latch("one");
    const two = await latch("two");
    await one.latch.start();
    await two.latch.start();
    const before = (await one.latch.awaitLeadership()) as Leadership;
    const zk = await clients.connect();
    const { names } = await zk.children(path);
    for (const name of names) {
      if ((await zk.get(`${path}/${name}`)).data.toString() === "one") await zk.delete(`${path}/${name}`);
    }
    const leadership = (await two.latch.awaitLeadership({ limitMs: 60_000 })) as Leadership;
    await until("the first knows", () => before.signal.aborted);
    await until("it is in line again", async () => (await two.latch.participants()).length === 2);
    expect(leadership.fence).toBeGreaterThan(before.fence);
  });

  it("reports why it cannot start: an invalid path, no permission", async () => {
    const zk = await clients.connect();
    expect(() => new LeaderLatch(zk, "no/path")).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
    await zk.create(path, undefined, {
      acl: [{ scheme: "world", id: "anyone", permissions: ["read", "admin"] }],
    });
    const { latch: one } = await latch("one", zk);
    const waiting = one.awaitLeadership();
    waiting.catch(() => undefined); // awaited below
    await expect(one.start()).rejects.toMatchObject({ code: "NO_AUTH" });
    await expect(waiting).rejects.toMatchObject({ code: "NO_AUTH" });
    expect(one.state).toBe("closed");
  });

  it("ends with its client", async () => {
    const zk = await clients.connect();
    const { latch: one, told } = await latch("one", zk);
    await one.start();
    const leadership = (await one.awaitLeadership()) as Leadership;
    const other = await latch("other");
    await other.latch.start();
    await zk.close();
    expect(leadership.signal.aborted).toBe(true);
    expect(one.hasLeadership).toBe(false);
    expect(told).toEqual(["isLeader", "notLeader"]);
    await one.close();
    await expect(one.awaitLeadership()).rejects.toMatchObject({ code: "CLOSED" });
    expect(await other.latch.awaitLeadership({ limitMs: 60_000 })).toBeDefined();
  });
});
