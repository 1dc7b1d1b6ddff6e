import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { DoubleBarrier, type Inside } from "../../src/recipes/barrier/double-barrier.ts";
import { namesUnder } from "../support/names-under.ts";
import { ownPath, serverTitle } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

describe(`double barrier on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  let zk: ZooKeeper;
  beforeEach(async () => {
    clients = new Clients();
    path = ownPath("barrier");
    zk = await clients.connect();
  });
  afterEach(() => clients.closeAll());

  const nodes = (count: number) =>
    until(`there are ${count} nodes`, async () => {
      const stat = await zk.exists(path);
      return (stat?.childCount ?? 0) === count;
    });

  it("enters and leaves together, round after round", async () => {
    const members = 4;
    const all: ZooKeeper[] = [zk];
    while (all.length < 3) all.push(await clients.connect());
    let inside = 0;
    const run = async (one: DoubleBarrier) => {
      for (let round = 1; round <= 5; round++) {
        const place = await one.enter();
        inside++;
        expect(place.signal.aborted).toBe(false);
        // All members have entered this round before any left it.
        expect(Math.ceil(inside / members)).toBe(round);
        expect(await place.leave()).toBe(true);
        expect(inside).toBeGreaterThanOrEqual(round * members);
      }
    };
    await Promise.all(
      Array.from({ length: members }, (_, index) => run(new DoubleBarrier(all[index % 3]!, path, members))),
    );
    expect(inside).toBe(5 * members);
    expect(await namesUnder(zk, path)).toEqual([]);
  });

  it("neither enters nor leaves before all members do", async () => {
    const barrier = new DoubleBarrier(zk, path, 2);
    expect(await barrier.tryEnter()).toBeUndefined();
    expect(await barrier.tryEnter({ limitMs: 100 })).toBeUndefined();
    await nodes(0);
    const abort = new AbortController();
    const entering = barrier.enter({ signal: abort.signal });
    await nodes(1);
    abort.abort();
    await expect(entering).rejects.toMatchObject({ code: "ABORTED" });
    await nodes(0);

    const [one, two] = await Promise.all([barrier.enter(), barrier.enter()]);
    const late = await barrier.tryEnter();
    expect(late).toBeDefined();
    const hasty = await barrier.tryEnter();
    expect(await hasty!.leave({ limitMs: 0 })).toBe(false);
    let left = 0;
    const leaving = [one, two].map(async (place) => {
      await place.leave();
      left++;
    });
    await until("two wait for the third", async () => (await zk.children(path)).names.length <= 3);
    expect(left).toBe(0);
    expect(await late!.leave()).toBe(true);
    await Promise.all(leaving);
    await expect(one.leave()).rejects.toMatchObject({ code: "NOT_HELD", path: one.path });
    expect(await namesUnder(zk, path)).toEqual([]);
  });

  it("continues if members die inside, and the next round works again", async () => {
    const mortal = await clients.connect();
    const members: [Inside, Inside] = await Promise.all([
      new DoubleBarrier(zk, path, 2).enter(),
      new DoubleBarrier(mortal, path, 2).enter(),
    ]);
    const leaving = members[0].leave();
    const lost = new Promise((resolve) => members[1].signal.addEventListener("abort", resolve, { once: true }));
    await mortal.close();
    await lost;
    expect(await leaving).toBe(true);
    await expect(members[1].leave()).rejects.toMatchObject({ code: "NOT_HELD" });

    const both = await clients.connect();
    await Promise.all([new DoubleBarrier(both, path, 2).enter(), new DoubleBarrier(both, path, 2).enter()]);
    await both.close();
    expect((await zk.children(path)).names).toEqual(["ready"]);
    const barrier = new DoubleBarrier(zk, path, 2);
    expect(await barrier.tryEnter({ limitMs: 200 })).toBeUndefined();
    const again = await Promise.all([barrier.enter(), barrier.enter()]);
    await Promise.all(again.map((place) => place.leave()));
  });

  it("stops waiting when its session ends", async () => {
    const mortal = await clients.connect();
    const entering = new DoubleBarrier(mortal, path, 2).enter();
    await nodes(1);
    const settled = expect(entering).rejects.toMatchObject({ code: "CLOSED" });
    await mortal.close();
    await settled;
    expect(() => new DoubleBarrier(zk, path, 0)).toThrow(expect.objectContaining({ code: "OPTION_INVALID", path }));
    expect(() => new DoubleBarrier(zk, "/", 1)).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
  });
});
