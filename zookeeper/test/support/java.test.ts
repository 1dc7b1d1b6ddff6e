import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { type Java, JavaFailure, onceCreated, startJava } from "./java.ts";
import { ownPath, sharedServer } from "./servers.ts";

const limit = 60_000;

/** Runs Curator's recipes in two Java processes, to show that this driver controls Curator and reports its events correctly. */
describe("Curator's recipes in two processes", () => {
  let a: Java;
  let b: Java;

  beforeAll(async () => {
    [a, b] = await Promise.all([startJava(sharedServer()), startJava(sharedServer())]);
  });

  afterAll(async () => {
    await Promise.all([a?.close(), b?.close()]);
  });

  it("latch", async () => {
    const path = ownPath("latch");
    const first = await a.make("latch", path, "first one");
    const second = await b.make("latch", path, "second+%");
    await first.do("start");
    await first.next("leader");
    await second.do("start");
    expect(await second.ask("hasLeadership")).toBe(false);
    await expect.poll(() => second.do("participants")).toEqual(["first one", "second+%"]);
    expect(await second.do("leader")).toEqual(["first one"]);
    await first.do("close", "NOTIFY_LEADER");
    await Promise.all([first.next("notLeader"), second.next("leader")]);
    expect(await second.ask("await", limit)).toBe(true);
    await second.do("close");
    expect(second.untaken("notLeader")).toEqual([]);
  });

  it("selector", async () => {
    const path = ownPath("selector");
    const first = await a.make("selector", path, "first", true);
    const second = await b.make("selector", path, "second", false);
    await first.do("start");
    await first.next("take");
    await second.do("start");
    await expect.poll(() => second.do("participants")).toEqual(["first", "second"]);
    expect(await first.ask("relinquish")).toBe(true);
    await Promise.all([first.next("released"), second.next("take")]);
    expect(await second.do("leader")).toEqual(["second"]);
    await second.do("interrupt");
    await Promise.all([second.next("interrupted"), first.next("take")]);
    expect(await first.ask("hasLeadership")).toBe(true);
    await Promise.all([first.do("close"), second.do("close")]);
  });

  it("mutex", async () => {
    const path = ownPath("mutex");
    const first = await a.make("mutex", path);
    const second = await b.make("mutex", path);
    expect(await first.ask("acquire", limit)).toBe(true);
    expect(await first.ask("acquire", limit)).toBe(true);
    expect(await second.ask("acquire", 50)).toBe(false);
    const [node = ""] = await second.do("participants");
    await second.do("revoke", node);
    await first.next("revoke");
    const waiting = second.ask("acquire", limit);
    await first.do("release");
    expect(await first.ask("isHeld")).toBe(true);
    await first.do("release");
    expect(await waiting).toBe(true);
    await second.do("release");
    await expect(second.do("release")).rejects.toBeInstanceOf(JavaFailure);
  });

  it("read-write lock", async () => {
    const path = ownPath("read-write");
    const first = await a.make("readWriteLock", path);
    const second = await b.make("readWriteLock", path);
    expect(await first.ask("acquireRead", limit)).toBe(true);
    expect(await second.ask("acquireRead", limit)).toBe(true);
    await second.do("releaseRead");
    expect(await second.ask("acquireWrite", 50)).toBe(false);
    await first.do("releaseRead");
    expect(await second.ask("acquireWrite", limit)).toBe(true);
    expect(await first.ask("acquireRead", 50)).toBe(false);
    await second.do("releaseWrite");
  });

  it("semaphore", async () => {
    const path = ownPath("semaphore");
    const first = await a.make("semaphore", path, 2);
    const second = await b.make("semaphore", path, 2);
    expect(await first.ask("acquire", limit, 2)).toBe(true);
    expect(await second.ask("acquire", 50)).toBe(false);
    await first.do("release");
    expect(await second.ask("acquire", limit)).toBe(true);
    expect(await second.do("participants")).toHaveLength(2);
    await Promise.all([first.do("release"), second.do("release")]);
  });

  it("double barrier", async () => {
    const path = ownPath("barrier");
    const both = await Promise.all([a, b].map((java) => java.make("doubleBarrier", path, 2)));
    expect(await Promise.all(both.map((barrier) => barrier.ask("enter", limit)))).toEqual([true, true]);
    expect(await Promise.all(both.map((barrier) => barrier.ask("leave", limit)))).toEqual([true, true]);
  });

  it("shared count", async () => {
    const path = ownPath("count");
    const first = await a.make("sharedCount", path, 7);
    const second = await b.make("sharedCount", path, 8);
    await first.do("start");
    await second.do("start");
    expect(await second.do("get")).toEqual(["7"]);
    await first.do("set", 9);
    expect(await second.next("changed")).toBe("9");
    expect(await second.ask("trySet", -1)).toBe(true);
    await Promise.all([first.do("close"), second.do("close")]);
  });

  it("atomic long", async () => {
    const path = ownPath("long");
    const first = await a.make("atomicLong", path);
    const second = await b.make("atomicLong", path);
    expect(await first.ask("initialize", 40)).toBe(true);
    expect(await second.do("add", 2)).toEqual(["true", "42"]);
    expect(await first.do("compareAndSet", 42n, 2n ** 53n + 1n)).toEqual(["true", "9007199254740993"]);
    expect(await second.do("compareAndSet", 42, 1)).toEqual(["false", expect.any(String)]);
    await second.do("forceSet", -5);
    expect(await first.do("get")).toEqual(["true", "-5"]);
    expect(Buffer.from((await a.client.do("get", path))[0], "base64").readBigInt64BE()).toBe(-5n);
  });

  it("group", async () => {
    const path = ownPath("group");
    const first = await a.make("group", path, "one", "data 1");
    const second = await b.make("group", path, "two", "");
    await Promise.all([first.do("start"), second.do("start")]);
    const members = async () => (await first.do("members")).sort();
    await expect.poll(members, { timeout: limit }).toEqual(["one=data 1", "two="]);
    await onceCreated(() => second.do("setData", "new"));
    await expect.poll(members, { timeout: limit }).toEqual(["one=data 1", "two=new"]);
    await second.do("close");
    await expect.poll(members, { timeout: limit }).toEqual(["one=data 1"]);
    await first.do("close");
  });

  describe.each(["without", "with"])("queues %s a lock path", (locked) => {
    const paths = (): [path: string, lockPath: string] => {
      const path = ownPath("queue");
      return [path, locked === "with" ? `${path}-locks` : "-"];
    };

    it("queue", async () => {
      const [path, lockPath] = paths();
      const producer = await a.make("queue", path, lockPath, "produces");
      const consumer = await b.make("queue", path, lockPath, "consumes");
      await Promise.all([producer.do("start"), consumer.do("start")]);
      await producer.do("put", "one");
      expect(await consumer.next("item")).toBe("one");
      await producer.do("putMany", "two,three");
      expect([await consumer.next("item"), await consumer.next("item")]).toEqual(["two", "three"]);
      expect(await producer.ask("flush", limit)).toBe(true);
      if (locked === "with") {
        await consumer.do("fail", 1);
        await producer.do("put", "again");
        expect(await consumer.next("failed")).toBe("again");
        expect(await consumer.next("item")).toBe("again");
      }
      await Promise.all([producer.do("close"), consumer.do("close")]);
    });

    it("id queue", async () => {
      const [path, lockPath] = paths();
      const producer = await a.make("idQueue", path, lockPath, "produces");
      await producer.do("start");
      await producer.do("put", "one", "id-1");
      await producer.do("put", "two", "id-2");
      await producer.do("flush", limit);
      expect(await producer.do("remove", "id-1")).toEqual(["1"]);
      const consumer = await b.make("idQueue", path, lockPath, "consumes");
      await consumer.do("start");
      expect(await consumer.next("item")).toBe("two");
      await Promise.all([producer.do("close"), consumer.do("close")]);
    });

    it("delay queue", async () => {
      const [path, lockPath] = paths();
      const producer = await a.make("delayQueue", path, lockPath, "produces");
      const consumer = await b.make("delayQueue", path, lockPath, "consumes");
      await Promise.all([producer.do("start"), consumer.do("start")]);
      const due = Date.now() + 400;
      await producer.do("put", "late", due);
      await producer.do("put", "early", due - 200);
      expect(await consumer.next("item")).toBe("early");
      expect(await consumer.next("item")).toBe("late");
      expect(Date.now()).toBeGreaterThanOrEqual(due - 1);
      await Promise.all([producer.do("close"), consumer.do("close")]);
    });

    it("priority queue", async () => {
      const [path, lockPath] = paths();
      const producer = await a.make("priorityQueue", path, lockPath, "produces");
      await producer.do("start");
      for (const priority of [5, 0, 70]) await producer.do("put", `item ${priority}`, priority);
      await producer.do("flush", limit);
      const consumer = await b.make("priorityQueue", path, lockPath, "consumes");
      await consumer.do("start");
      const items = [await consumer.next("item"), await consumer.next("item"), await consumer.next("item")];
      expect(items).toEqual(["item 0", "item 5", "item 70"]);
      await Promise.all([producer.do("close"), consumer.do("close")]);
    });
  });
});

describe("a Java process", () => {
  it("hands over when it is killed, and that is reported", async () => {
    const path = ownPath("killed");
    const victim = await startJava(sharedServer(), { sessionTimeout: 6_000 });
    await using heir = await startJava(sharedServer());
    const [first, second] = [await victim.make("latch", path, "victim"), await heir.make("latch", path, "heir")];
    await first.do("start");
    await first.next("leader");
    await second.do("start");
    const nothing = first.next("notLeader");
    nothing.catch(() => undefined); // its rejection is checked below
    await victim.kill();
    await expect(nothing).rejects.toThrow(/the Java process is gone/);
    await expect(first.do("hasLeadership")).rejects.toThrow(/the Java process is gone/);
    await second.next("leader");
    await expect(heir.client.do("get", `${path}/none`)).rejects.toMatchObject({ exception: "NoNodeException" });
  });

  it("uses TLS, SASL and digest with a server that requires them", async () => {
    const users = { bob: "b secret" };
    await using ensemble = await Ensemble.start({ tls: true, sasl: { users }, superPassword: "s" });
    await using java = await startJava(ensemble.secureConnectString(), {
      properties: ensemble.tls?.javaProperties ?? {},
      digest: "super:s",
    });
    expect(await java.client.do("create", "/a/b", "PERSISTENT")).toEqual(["/a/b"]);
    expect(await java.client.do("children", "/a")).toEqual(["b"]);
    await using bob = await startJava(ensemble.connectString(), { properties: ensemble.javaLogin("bob") });
    expect(await bob.client.ask("exists", "/a/b")).toBe(true);
    expect(ensemble.server.log()).toMatch(/Successfully authenticated client: authenticationID=bob/);
  });

  it("is refused without a login if one is required", async () => {
    const sasl = { users: { bob: 'quo"ted' }, required: true };
    await using ensemble = await Ensemble.start({ sasl });
    await using bob = await startJava(ensemble.connectString(), { properties: ensemble.javaLogin("bob") });
    expect(await bob.client.do("children", "/")).toEqual(["zookeeper"]);
    await using stranger = await startJava(ensemble.connectString());
    const turnedAway = { exception: "SessionClosedRequireAuthException" };
    await expect(stranger.client.do("children", "/")).rejects.toMatchObject(turnedAway);
  });
});
