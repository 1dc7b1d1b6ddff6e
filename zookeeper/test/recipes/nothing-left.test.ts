/** Closed recipes leave no ephemeral node and no watch, even if their client stays open. */
import { expect, it } from "vitest";
import { NodeCache } from "../../src/recipes/cache/node-cache.ts";
import { TreeCache } from "../../src/recipes/cache/tree-cache.ts";
import { SharedCount } from "../../src/recipes/counters/shared-count.ts";
import { graceLock } from "../../src/recipes/grace-lock/nodes.ts";
import { GroupMember } from "../../src/recipes/group/group.ts";
import { LeaderLatch } from "../../src/recipes/leader/latch.ts";
import { LeaderSelector } from "../../src/recipes/leader/selector.ts";
import { fourLetter, watchedIn } from "../../src/testing/four-letter.ts";
import { namesUnder } from "../support/names-under.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

it(`closed recipes leave no nodes on ${serverTitle()}`, async () => {
  const clients = new Clients();
  const path = ownPath("left");
  try {
    const holder = await clients.connect();
    const zk = await clients.connect();
    const port = Number(sharedServer().split(":").at(-1));
    const session = () => `0x${BigInt.asUintN(64, zk.session.id).toString(16)}`;
    const watched = async () => {
      const all = watchedIn(await fourLetter(port, "wchp"));
      return [...all].filter(([, sessions]) => sessions.includes(session())).map(([at]) => at);
    };

    // Another client first holds the latches, a member's name and the grace lock, so that the recipes under test wait without getting them.
    const latch = new LeaderLatch(holder, `${path}/latch`);
    await latch.start();
    const selector = new LeaderSelector(
      holder,
      `${path}/selector`,
      ({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
    );
    const running = selector.run();
    await until("it leads", () => selector.hasLeadership);
    const member = new GroupMember(holder, `${path}/group`, "same");
    await member.start();
    const lock = graceLock(holder, `${path}/grace`, { owner: "holder" });
    expect(await lock.tryLock()).toBeDefined();

    for (let round = 0; round < 3; round++) {
      const behind = new LeaderLatch(zk, `${path}/latch`);
      await behind.start();
      const waiting = new LeaderSelector(zk, `${path}/selector`, () => undefined);
      const waits = waiting.run();
      await until("it is in line", async () => (await waiting.participants()).length === 2);
      const own = new GroupMember(zk, `${path}/group`, "own");
      await own.start();
      const same = new GroupMember(zk, `${path}/group`, "same");
      const joins = same.start().catch((error: unknown) => error);
      const count = new SharedCount(zk, `${path}/count`);
      await count.start();
      const node = new NodeCache(zk, `${path}/count/none`);
      const tree = new TreeCache(zk, `${path}/group`);
      await Promise.all([node.ready, tree.ready]);
      const contends = graceLock(zk, `${path}/grace`, { owner: "behind" });
      expect(await contends.tryLock()).toBeUndefined();
      await until("all watch", async () => (await watched()).length >= 6);
      await Promise.all([behind, waiting, own, same, count, node, tree, contends].map((one) => one.close()));
      await waits;
      expect(await joins).toMatchObject({ code: "CLOSED" });
    }
    expect(await zk.ephemerals()).toEqual([]);
    await until("no watch is left", async () => (await watched()).length === 0);
    await Promise.all([latch.close(), selector.close(), member.close(), lock.close()]);
    await running;
    for (const name of ["latch", "selector", "group"]) {
      expect(await namesUnder(zk, `${path}/${name}`)).toEqual([]);
    }
  } finally {
    await clients.closeAll();
  }
});
