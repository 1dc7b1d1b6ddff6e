/** Tests elections and shared values together with Java's Curator on the same paths, in both directions. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AtomicLong } from "../../src/recipes/counters/atomic-long.ts";
import { SharedCount } from "../../src/recipes/counters/shared-count.ts";
import { GroupMember } from "../../src/recipes/group/group.ts";
import { LeaderLatch } from "../../src/recipes/leader/latch.ts";
import { LeaderSelector } from "../../src/recipes/leader/selector.ts";
import { type Java, onceCreated, startJava } from "../support/java.ts";
import { ownPath, sharedServer } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

const limitMs = 60_000;

describe("elections and counters shared with Java's Curator", () => {
  let java: Java;
  let clients: Clients;
  let path: string;
  beforeAll(async () => {
    java = await startJava(sharedServer());
  });
  afterAll(() => java?.close());
  beforeEach(() => {
    clients = new Clients();
    path = ownPath("java");
  });
  afterEach(() => clients.closeAll());

  it("latches lead in turn", async () => {
    const zk = await clients.connect();
    const ours = () => new LeaderLatch(zk, path, { id: "ours" });
    const first = ours();
    await first.start();
    await first.awaitLeadership({ limitMs });
    const theirs = await java.make("latch", path, "theirs");
    await theirs.do("start");
    await until("both are in line", async () => (await first.participants()).length === 2);
    const last = ours();
    await last.start();
    expect((await first.participants()).map(({ id }) => id)).toEqual(["ours", "theirs", "ours"]);
    expect(await theirs.do("participants")).toEqual(expect.arrayContaining(["ours", "theirs"]));
    expect(await theirs.do("leader")).toEqual(["ours"]);
    expect(await theirs.ask("hasLeadership")).toBe(false);
    await first.close();
    await theirs.next("leader");
    expect(await last.leader()).toEqual({ id: "theirs", leader: true });
    expect(last.hasLeadership).toBe(false);
    await theirs.do("close");
    expect(await last.awaitLeadership({ limitMs })).toBeDefined();
    await last.close();
  });

  it("selectors lead in turn", async () => {
    const zk = await clients.connect();
    let finish: () => void = () => undefined;
    let led = 0;
    const ours = new LeaderSelector(
      zk,
      path,
      async () => {
        led++;
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
      { id: "ours", autoRequeue: true },
    );
    const running = ours.run();
    await until("we lead", () => led === 1);
    const theirs = await java.make("selector", path, "theirs", true);
    await theirs.do("start");
    await until("both are in line", async () => (await ours.participants()).length === 2);
    expect(await theirs.do("leader")).toEqual(["ours"]);
    for (const round of [2, 3]) {
      finish();
      await theirs.next("take");
      expect(ours.hasLeadership).toBe(false);
      expect(await ours.leader()).toEqual({ id: "theirs", leader: true });
      await until("we wait again", async () => (await theirs.do("participants")).includes("ours"));
      expect(await theirs.ask("relinquish")).toBe(true);
      await until("we lead again", () => led === round);
      // Java must be in the queue before our next node.
      await until("they wait again", async () => (await ours.participants()).length === 2);
    }
    finish();
    const closed = ours.close();
    finish();
    await closed;
    await running;
    await theirs.next("take");
    await theirs.do("close");
  });

  it("shared counts have one value", async () => {
    const ours = new SharedCount(await clients.connect(), path, 5);
    await ours.start();
    const theirs = await java.make("sharedCount", path, 9);
    await theirs.do("start");
    expect(await theirs.do("get")).toEqual(["5"]);
    await ours.set(-6);
    expect(await theirs.next("changed")).toBe("-6");
    await theirs.do("set", 2_000_000_000);
    await until("we see it", () => ours.count === 2_000_000_000);
    const before = ours.versioned;
    expect(await theirs.ask("trySet", 1)).toBe(true);
    expect(await ours.trySet(before, 2)).toBe(false);
    expect(ours.count).toBe(1);
    await ours.close();
    await theirs.do("close");
  });

  it("atomic longs lose nothing", async () => {
    const ours = new AtomicLong(await clients.connect(), path, { tries: 100 });
    const theirs = await java.make("atomicLong", path);
    expect(await ours.add(-3n)).toEqual({ before: 0n, after: -3n });
    expect(await theirs.do("get")).toEqual(["true", "-3"]);
    expect(await theirs.do("compareAndSet", -3, 2n ** 62n)).toEqual(["true", String(2n ** 62n)]);
    expect(await ours.get()).toBe(2n ** 62n);
    await ours.set(0n);
    let failed = 0;
    const both = [
      async () => {
        for (let done = 0; done < 30; done++) await ours.increment();
      },
      async () => {
        for (let done = 0; done < 30; done++) if ((await theirs.do("add", 1))[0] !== "true") failed++;
      },
    ];
    await Promise.all(both.map((one) => one()));
    expect(await ours.get()).toBe(BigInt(60 - failed));
  });

  it("groups list the same members", async () => {
    const ours = new GroupMember(await clients.connect(), path, "ours", "1");
    await ours.start();
    const theirs = await java.make("group", path, "theirs", "2");
    await theirs.do("start");
    await until("we see it", () => ours.members.get("theirs")?.toString() === "2");
    await until("it sees us", async () => (await theirs.do("members")).includes("ours=1"));
    await ours.setData("3");
    await until("it sees the data", async () => (await theirs.do("members")).includes("ours=3"));
    await onceCreated(() => theirs.do("setData", "4"));
    await until("we see the data", () => ours.members.get("theirs")?.toString() === "4");
    await theirs.do("close");
    await until("it has left", () => !ours.members.has("theirs"));
    await ours.close();
  });
});
