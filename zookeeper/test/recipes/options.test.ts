import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  AtomicLong,
  Barrier,
  ChildrenCache,
  DelayQueue,
  DoubleBarrier,
  graceLock,
  LeaderLatch,
  LeaderSelector,
  Mailbox,
  Mailboxes,
  MultiLock,
  Mutex,
  NodeCache,
  PersistentWatcher,
  PriorityQueue,
  Queue,
  ReadWriteLock,
  Semaphore,
  TreeCache,
  type ZooKeeper,
} from "../../src/index.ts";
import { ownPath } from "../support/servers.ts";
import { Clients } from "./stage.ts";

type Call = (zk: ZooKeeper, path: string, options: never) => unknown;

const recipes: Record<string, Call> = {
  Mutex: (zk, path, options) => new Mutex(zk, path, options),
  ReadWriteLock: (zk, path, options) => new ReadWriteLock(zk, path, options),
  Semaphore: (zk, path, options) => new Semaphore(zk, path, 1, options),
  Barrier: (zk, path, options) => new Barrier(zk, path, options),
  LeaderLatch: (zk, path, options) => new LeaderLatch(zk, path, options),
  LeaderSelector: (zk, path, options) => new LeaderSelector(zk, path, () => undefined, options),
  AtomicLong: (zk, path, options) => new AtomicLong(zk, path, options),
  Queue: (zk, path, options) => new Queue(zk, path, options),
  PriorityQueue: (zk, path, options) => new PriorityQueue(zk, path, options),
  DelayQueue: (zk, path, options) => new DelayQueue(zk, path, options),
  NodeCache: (zk, path, options) => new NodeCache(zk, path, options),
  ChildrenCache: (zk, path, options) => new ChildrenCache(zk, path, options),
  TreeCache: (zk, path, options) => new TreeCache(zk, path, options),
  PersistentWatcher: (zk, path, options) => new PersistentWatcher(zk, path, options),
  graceLock: (zk, path, options) => graceLock(zk, path, options),
  Mailbox: (zk, path, options) => new Mailbox(zk, path, "member", options),
};

const calls: Record<string, Call> = {
  sync: (zk, path, options) => zk.sync(path, options),
  getAcl: (zk, path, options) => zk.getAcl(path, options),
  eachChild: (zk, path, options) => zk.eachChild(path, () => undefined, options),
  ephemerals: (zk, path, options) => zk.ephemerals(path, options),
  descendantCount: (zk, path, options) => zk.descendantCount(path, options),
  whoAmI: (zk, _, options) => zk.whoAmI(options),
  config: (zk, _, options) => zk.config(options),
  deleteAll: (zk, path, options) => zk.deleteAll(path, options),
  removeWatches: (zk, path, options) => zk.removeWatches(path, options),
  "Mutex.acquire": (zk, path, options) => new Mutex(zk, path).acquire(options),
  "Mutex.tryAcquire": (zk, path, options) => new Mutex(zk, path).tryAcquire(options),
  "ReadWriteLock.read.acquire": (zk, path, options) => new ReadWriteLock(zk, path).read.acquire(options),
  "ReadWriteLock.write.tryAcquire": (zk, path, options) => new ReadWriteLock(zk, path).write.tryAcquire(options),
  "MultiLock.acquire": (zk, path, options) => new MultiLock([new Mutex(zk, path)]).acquire(options),
  "MultiLock.tryAcquire": (zk, path, options) => new MultiLock([new Mutex(zk, path)]).tryAcquire(options),
  "Semaphore.acquire": (zk, path, options) => new Semaphore(zk, path, 1).acquire(options),
  "Semaphore.tryAcquireMany": (zk, path, options) => new Semaphore(zk, path, 1).tryAcquireMany(1, options),
  "Barrier.raise": (zk, path, options) => new Barrier(zk, path).raise(options),
  "Barrier.lower": (zk, path, options) => new Barrier(zk, path).lower(options),
  "Barrier.wait": (zk, path, options) => new Barrier(zk, path).wait(options),
  "DoubleBarrier.enter": (zk, path, options) => new DoubleBarrier(zk, path, 1).enter(options),
  "DoubleBarrier.tryEnter": (zk, path, options) => new DoubleBarrier(zk, path, 1).tryEnter(options),
  "Inside.leave": async (zk, path, options) => (await new DoubleBarrier(zk, path, 1).enter()).leave(options),
  "LeaderLatch.awaitLeadership": (zk, path, options) => new LeaderLatch(zk, path).awaitLeadership(options),
  "GraceLock.tryLock": (zk, path, options) => graceLock(zk, path, { owner: "a" }).tryLock(options),
  "GraceLock.lock": (zk, path, options) => graceLock(zk, path, { owner: "a" }).lock(options),
  "Queue.put": (zk, path, options) => new Queue(zk, path).put("item", options),
  "Queue.remove": (zk, path, options) => new Queue(zk, path).remove("id", options),
  "Queue.consume": (zk, path, options) => new Queue(zk, path).consume(() => undefined, options),
  "PriorityQueue.put": (zk, path, options) => new PriorityQueue(zk, path).put("item", options),
  "DelayQueue.putAll": (zk, path, options) => new DelayQueue(zk, path).putAll(["item"], options),
  "Mailboxes.deliver": (zk, path, options) => new Mailboxes(zk, path).deliver("member", "letter", options),
  "Mailboxes.reclaim": (zk, path, options) => new Mailboxes(zk, path).reclaim(() => undefined, options),
  "Mailboxes.keep": (zk, path, options) => new Mailboxes(zk, path).keep(() => undefined, options),
};

describe("an option that does not exist is refused", () => {
  const clients = new Clients();
  let zk: ZooKeeper;
  beforeAll(async () => {
    zk = await clients.connect();
  });
  afterAll(() => clients.closeAll());

  it.each(Object.entries(recipes))("by %s", (_, make) => {
    for (const options of [{ misspelt: 1 }, null, "text"]) {
      expect(() => make(zk, ownPath(), options as never)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    }
  });

  it.each(Object.entries(calls))("by %s", async (_, call) => {
    for (const options of [{ sginal: 1 }, null]) {
      await expect(call(zk, ownPath(), options as never)).rejects.toMatchObject({
        code: "OPTION_INVALID",
        hint: expect.stringMatching(options ? /^did you mean signal\? there are .*\bsignal\b/ : /^give an object: /),
      });
    }
  });

  it.each([
    ["ephemral", /^did you mean ephemeral\? there are /],
    ["Sequential", /^did you mean sequential\? there are /],
    ["ttl", /^did you mean ttlMs\? there are /],
    ["retries", /^there are /],
    ["x".repeat(1_000_000), /^there are /],
  ])("with the nearest name as a hint for %.20s", async (name, hint) => {
    await expect(zk.create(ownPath(), "", { [name]: true })).rejects.toMatchObject({
      code: "OPTION_INVALID",
      hint: expect.stringMatching(hint),
      message: expect.stringMatching(/^create .{1,200}$/),
    });
  });
});
