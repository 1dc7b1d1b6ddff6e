import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  AtomicLong,
  Barrier,
  ChildrenCache,
  DelayQueue,
  LeaderLatch,
  LeaderSelector,
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
      await expect(call(zk, ownPath(), options as never)).rejects.toMatchObject({ code: "OPTION_INVALID" });
    }
  });
});
