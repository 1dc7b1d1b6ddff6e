/** The holder of a lock is killed, or stopped for longer than its session. The next contender gets the lock afterwards, never before. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { Mutex } from "../../src/recipes/locks/mutex.ts";
import { ReadWriteLock } from "../../src/recipes/locks/read-write-lock.ts";
import { Semaphore } from "../../src/recipes/locks/semaphore.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { startJava } from "../support/java.ts";
import { ownPath } from "../support/servers.ts";
import { LockHolder } from "./lock-holder.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

/** Session timeout of processes that are killed or stopped, in ms. This process uses the default, which is longer. */
const sessionTimeoutMs = endingSessionMs;
const limitMs = 60_000;
const recipes = ["mutex", "write", "semaphore"] as const;
type Recipe = (typeof recipes)[number];

describe("a killed holder", () => {
  let ensemble: Ensemble;
  let clients: Clients;
  let zk: ZooKeeper;
  let path: string;
  beforeAll(async () => {
    ensemble = await Ensemble.start({ tickTime: 100 });
  });
  afterAll(() => ensemble?.stop());
  beforeEach(async () => {
    clients = new Clients(ensemble.connectString());
    zk = await clients.connect();
    path = ownPath("killed");
  });
  afterEach(() => clients.closeAll());

  const pathOf = (recipe: Recipe) => `${path}-${recipe}`;
  const hold = (recipe: Recipe) =>
    LockHolder.start({ hosts: ensemble.connectString(), recipe, path: pathOf(recipe), sessionTimeoutMs });
  const ours = (recipe: Recipe) =>
    recipe === "mutex"
      ? new Mutex(zk, pathOf(recipe))
      : recipe === "write"
        ? new ReadWriteLock(zk, pathOf(recipe)).write
        : new Semaphore(zk, pathOf(recipe), 1);
  const inLine = (recipe: Recipe) =>
    until(`two are in line for the ${recipe}`, async () => {
      const parent = recipe === "semaphore" ? `${pathOf(recipe)}/leases` : pathOf(recipe);
      return (await zk.children(parent)).names.length === 2;
    });

  it("this client follows this client", async () => {
    const holders = await Promise.all(recipes.map(hold));
    const waiting = recipes.map((recipe) => ours(recipe).acquire());
    await Promise.all(recipes.map(inLine));
    await Promise.all(holders.map((holder) => holder.kill()));
    const held = await Promise.all(waiting);
    for (const [index, { fence }] of held.entries()) expect(fence).toBeGreaterThan(holders[index]!.fence);
  });

  it("Java follows this client, and this client follows Java", async () => {
    const holders = await Promise.all(recipes.map(hold));
    await using java = await startJava(ensemble.connectString(), { sessionTimeout: sessionTimeoutMs });
    const mutex = await java.make("mutex", pathOf("mutex"));
    const write = await java.make("readWriteLock", pathOf("write"));
    const semaphore = await java.make("semaphore", pathOf("semaphore"), 1);
    const theirs = [
      mutex.ask("acquire", limitMs),
      write.ask("acquireWrite", limitMs),
      semaphore.ask("acquire", limitMs),
    ];
    await Promise.all(recipes.map(inLine));
    await Promise.all(holders.map((holder) => holder.kill()));
    expect(await Promise.all(theirs)).toEqual([true, true, true]);

    const waiting = recipes.map((recipe) => ours(recipe).acquire());
    await Promise.all(recipes.map(inLine));
    await java.kill();
    const held = await Promise.all(waiting);
    for (const [index, { fence }] of held.entries()) expect(fence).toBeGreaterThan(holders[index]!.fence);
  });

  it("a stopped holder no longer believes it holds the lock when it continues", async () => {
    await using holder = await hold("mutex");
    const waiting = ours("mutex").acquire();
    await inLine("mutex");
    holder.signal("SIGSTOP");
    const held = await waiting;
    expect(held.fence).toBeGreaterThan(holder.fence);
    const lost = holder.says("lost");
    holder.signal("SIGCONT");
    expect(await lost).toBe("false");
    expect(held.held).toBe(true);
  });
});
