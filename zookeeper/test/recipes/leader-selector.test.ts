import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import type { Leadership } from "../../src/recipes/leader/latch.ts";
import { LeaderSelector, type SelectorOptions } from "../../src/recipes/leader/selector.ts";
import { ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

/** A selector whose turns end when the test says so. */
class Stage {
  readonly turns: (Leadership & { finish: () => void; fail: (error: unknown) => void })[] = [];
  readonly selector: LeaderSelector;

  constructor(zk: ZooKeeper, path: string, options?: SelectorOptions) {
    this.selector = new LeaderSelector(
      zk,
      path,
      (leadership) =>
        new Promise<void>((resolve, reject) => {
          this.turns.push({ ...leadership, finish: resolve, fail: reject });
          leadership.signal.addEventListener("abort", () => reject(leadership.signal.reason), { once: true });
        }),
      options,
    );
  }

  async led(times: number): Promise<void> {
    await until(`${this.selector.id} led ${times} times`, () => this.turns.length >= times);
  }

  finish(): void {
    this.turns.at(-1)?.finish();
  }
}

describe(`leader selector on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  beforeEach(() => {
    clients = new Clients();
    path = ownPath("selector");
  });
  afterEach(() => clients.closeAll());

  const stage = async (id: string, options: SelectorOptions = {}, zk?: ZooKeeper) =>
    new Stage(zk ?? (await clients.connect()), path, { id, ...options });

  it("leads while its callback runs, once for each run", async () => {
    const a = await stage("a");
    const b = await stage("b");
    const ran = a.selector.run();
    await a.led(1);
    expect(a.selector.run()).toBe(ran);
    const ranB = b.selector.run();
    await until("both are in line", async () => (await b.selector.participants()).length === 2);
    expect(await b.selector.participants()).toEqual([
      { id: "a", leader: true },
      { id: "b", leader: false },
    ]);
    expect(await b.selector.leader()).toEqual({ id: "a", leader: true });
    expect([a.selector.hasLeadership, b.selector.hasLeadership]).toEqual([true, false]);
    a.finish();
    await ran;
    await b.led(1);
    expect([a.selector.hasLeadership, b.selector.hasLeadership]).toEqual([false, true]);
    expect(a.turns[0]!.signal.aborted).toBe(true);
    expect(b.turns[0]!.fence).toBeGreaterThan(a.turns[0]!.fence);
    const again = a.selector.run();
    b.finish();
    await ranB;
    await a.led(2);
    a.finish();
    await again;
    expect(await a.selector.participants()).toEqual([]);
  });

  it("creates its nodes as Curator does", async () => {
    const a = await stage("wähler");
    const ran = a.selector.run();
    await a.led(1);
    const zk = await clients.connect();
    const { names } = await zk.children(path);
    expect(names).toEqual([expect.stringMatching(/^_c_[0-9a-f-]{36}-lock-\d{10}$/)]);
    expect((await zk.get(`${path}/${names[0]}`)).data.toString()).toBe("wähler");
    a.finish();
    await ran;
  });

  it("queues again by itself, alternating with other members, until it is closed", async () => {
    const a = await stage("a", { autoRequeue: true });
    const b = await stage("b", { autoRequeue: true });
    const running = [a.selector.run()];
    await a.led(1);
    running.push(b.selector.run());
    for (let round = 1; round <= 3; round++) {
      for (const one of [a, b]) {
        await one.led(round);
        await until("the other waits", async () => (await one.selector.participants()).length === 2);
        one.finish();
      }
    }
    await Promise.all([a.selector.close(), b.selector.close()]);
    await Promise.all(running);
    const fences = [...a.turns, ...b.turns].map(({ fence }) => fence);
    expect(new Set(fences).size).toBe(fences.length);
    expect(await (await stage("c")).selector.participants()).toEqual([]);
    await expect(a.selector.run()).rejects.toMatchObject({ code: "CLOSED", path });
  });

  it("queues again after a callback that threw; without a listener the error is a process warning", async () => {
    const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
    let turns = 0;
    const failing = new LeaderSelector(
      await clients.connect(),
      path,
      () => {
        turns += 1;
        throw new Error("no disk");
      },
      { autoRequeue: true },
    );
    const running = failing.run();
    expect(await warned).toMatchObject({
      name: "LeaderSelectorWarning",
      message: expect.stringMatching(/no disk/),
    });
    await until("it has its next turn", () => turns > 1);
    await failing.close();
    await running;
  });

  it("stops leading by interruption and by close", async () => {
    const a = await stage("a");
    expect(a.selector.interruptLeadership()).toBe(false);
    const ran = a.selector.run();
    await a.led(1);
    expect(a.selector.interruptLeadership()).toBe(true);
    expect(a.selector.hasLeadership).toBe(false);
    await ran;
    expect(a.turns[0]!.signal.reason).toMatchObject({ code: "NOT_HELD", path });
    const again = a.selector.run();
    await a.led(2);
    await a.selector.close();
    await again;
    expect(a.turns[1]!.signal.aborted).toBe(true);
  });

  it("leaves the line if it is closed before it leads", async () => {
    const a = await stage("a");
    const b = await stage("b");
    const ran = a.selector.run();
    await a.led(1);
    const waiting = b.selector.run();
    await until("both are in line", async () => (await b.selector.participants()).length === 2);
    await b.selector.close();
    await waiting;
    expect(b.turns).toEqual([]);
    await until("it has left", async () => (await a.selector.participants()).length === 1);
    a.finish();
    await ran;
  });

  it("aborts its callback if the connection is in doubt, and queues again", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      const a = await stage("a", { autoRequeue: true }, await clients.connect({}, proxy.address));
      const running = a.selector.run();
      await a.led(1);
      proxy.reset();
      await a.led(2);
      expect(a.turns[0]!.signal.reason).toMatchObject({ code: "NOT_HELD" });
      expect(a.turns[1]!.fence).toBeGreaterThan(a.turns[0]!.fence);
      expect(a.selector.hasLeadership).toBe(true);
      await a.selector.close();
      await running;
    } finally {
      await proxy.close();
    }
  });

  it("aborts its callback if the session ends, and leads again only in the next session", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      const zk = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
      const a = await stage("a", { autoRequeue: true }, zk);
      const running = a.selector.run();
      await a.led(1);
      const b = await stage("b");
      const ranB = b.selector.run();
      proxy.refuse();
      await b.led(1);
      expect(a.selector.hasLeadership).toBe(false);
      proxy.accept();
      await until("it is in line again", async () => (await b.selector.participants()).length === 2);
      expect(a.turns.length).toBe(1);
      b.finish();
      await ranB;
      await a.led(2);
      expect(a.turns[1]!.fence).toBeGreaterThan(b.turns[0]!.fence);
      await a.selector.close();
      await running;
    } finally {
      await proxy.close();
    }
  });

  it("passes on the error that its callback threw", async () => {
    const a = await stage("a");
    const ran = a.selector.run();
    await a.led(1);
    a.turns[0]!.fail(new Error("no luck"));
    await expect(ran).rejects.toThrow("no luck");
    const b = await stage("b", { autoRequeue: true });
    const trouble = new Promise((resolve) => b.selector.listen({ trouble: resolve }));
    const running = b.selector.run();
    await b.led(1);
    b.turns[0]!.fail(new Error("no luck again"));
    expect(await trouble).toMatchObject({ message: "no luck again" });
    await b.led(2);
    await b.selector.close();
    await running;
  });

  it("leads once for each run, even if its node cannot be deleted", async () => {
    const zk = await clients.connect();
    const a = await stage("a", {}, zk);
    const running = a.selector.run();
    await a.led(1);
    await zk.setAcl(path, [{ scheme: "world", id: "anyone", permissions: ["read", "create", "admin"] }]);
    a.finish();
    await expect(running).rejects.toMatchObject({ code: "NO_AUTH" });
    expect(a.turns.length).toBe(1);
    expect(await a.selector.participants()).toHaveLength(1);
  });

  it("reports why it cannot run, and ends with its client", async () => {
    const zk = await clients.connect();
    expect(() => new LeaderSelector(zk, "x", () => undefined)).toThrow(
      expect.objectContaining({ code: "PATH_INVALID" }),
    );
    await zk.create(path, undefined, { acl: [{ scheme: "world", id: "anyone", permissions: ["read"] }] });
    const a = await stage("a", {}, zk);
    await expect(a.selector.run()).rejects.toMatchObject({ code: "NO_AUTH" });
    const b = new Stage(zk, `${path}-2`, { id: "b", autoRequeue: true });
    const running = b.selector.run();
    await b.led(1);
    await zk.close();
    await running;
    expect(b.turns[0]!.signal.aborted).toBe(true);
  });
});
