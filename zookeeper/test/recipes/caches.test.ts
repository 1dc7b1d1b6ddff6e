import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { ChildrenCache } from "../../src/recipes/cache/children-cache.ts";
import type { CacheEvent } from "../../src/recipes/cache/mirror.ts";
import { NodeCache } from "../../src/recipes/cache/node-cache.ts";
import { TreeCache } from "../../src/recipes/cache/tree-cache.ts";
import { ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

/** Formats an event as a short text: type, path, data. */
function short(event: CacheEvent): string {
  if (event.type === "stale" || event.type === "fresh") return event.type;
  const node = event.type === "removed" ? event.before : event.node;
  return `${event.type} ${node.path} ${node.data}`;
}

function record(cache: NodeCache | ChildrenCache | TreeCache, root: string): string[] {
  const told: string[] = [];
  cache.listen({ event: (event) => told.push(short(event).replace(root, "~")) });
  return told;
}

describe(`caches on ${serverTitle()}`, () => {
  let clients: Clients;
  let writer: ZooKeeper;
  let reader: ZooKeeper;
  let path: string;
  beforeEach(async () => {
    clients = new Clients();
    path = ownPath("cache");
    writer = await clients.connect();
    reader = await clients.connect();
  });
  afterEach(() => clients.closeAll());

  it("keep one node current, from before it exists until after it is deleted", async () => {
    const cache = new NodeCache(reader, path);
    const told = record(cache, path);
    await cache.ready;
    expect(cache.fresh).toBe(true);
    expect(cache.node).toBeUndefined();
    await writer.create(path, "1");
    await until("it is there", () => cache.node?.data.toString() === "1");
    await writer.create(`${path}/child`, "no matter");
    await writer.set(path, "2");
    await until("it changed", () => cache.node?.data.toString() === "2");
    expect(cache.node?.stat.version).toBe(1);
    await writer.delete(`${path}/child`);
    await writer.delete(path);
    await until("it is gone", () => cache.node === undefined);
    expect(told).toEqual(["fresh", "added ~ 1", "changed ~ 2", "removed ~ 2"]);
    await cache.close();
    expect(cache.fresh).toBe(false);
    await writer.create(path, "3");
    await writer.delete(path);
    expect(told.length).toBe(4);
  });

  it("keep children with their data, but no deeper descendants", async () => {
    await writer.create(path);
    await writer.create(`${path}/a`, "1");
    const cache = new ChildrenCache(reader, path);
    const told = record(cache, path);
    await cache.ready;
    expect(cache.names).toEqual(["a"]);
    await writer.create(`${path}/b`, "2");
    await writer.create(`${path}/a/deeper`, "x");
    await writer.set(`${path}/a`, "3");
    await until("both are known", () => cache.get("b") && cache.get("a")?.data.toString() === "3");
    await writer.delete(`${path}/b`);
    await until("it is gone", () => cache.get("b") === undefined);
    expect(cache.names).toEqual(["a"]);
    expect(cache.get("")).toBeUndefined();
    expect(told.sort()).toEqual(["added ~/a 1", "added ~/b 2", "changed ~/a 3", "fresh", "removed ~/b 2"]);
    await cache.close();
  });

  it("keep a tree current", async () => {
    for (const [name, data] of [
      ["", "root"],
      ["/a", "1"],
      ["/a/b", "2"],
      ["/c", "3"],
    ]) {
      await writer.create(path + name, data);
    }
    const cache = new TreeCache(reader, path);
    const told = record(cache, path);
    await cache.ready;
    expect([...cache.nodes.keys()].map((one) => one.slice(path.length)).sort()).toEqual(["", "/a", "/a/b", "/c"]);
    expect(cache.children(path)).toEqual(["a", "c"]);
    expect(cache.children(`${path}/a`)).toEqual(["b"]);
    await writer.create(`${path}/a/b/d`, "4");
    await until("it is known", () => cache.get(`${path}/a/b/d`)?.data.toString() === "4");
    await writer.delete(`${path}/a/b/d`);
    await writer.delete(`${path}/a/b`);
    await until("it is gone", () => cache.get(`${path}/a/b`) === undefined);
    expect(told.slice(-3)).toEqual(["added ~/a/b/d 4", "removed ~/a/b/d 4", "removed ~/a/b 2"]);
    await cache.close();
  });

  it("end up with the actual state, however fast it changes", async () => {
    await writer.create(path);
    const cache = new TreeCache(reader, path);
    await cache.ready;
    const work: Promise<unknown>[] = [];
    for (let round = 0; round < 20; round++) {
      for (let name = 0; name < 20; name++) {
        const at = `${path}/${name}`;
        if (round % 4 === 0) work.push(writer.create(at, `${round}`));
        else if (round % 4 === 3 && name % 2 === round % 3) work.push(writer.delete(at));
        else work.push(writer.set(at, `${round}`));
      }
    }
    await Promise.allSettled(work); // some fail, because the node exists or is missing; the contents are checked below
    const wanted = new Map<string, string>([[path, ""]]);
    for (const name of (await writer.children(path)).names) {
      wanted.set(`${path}/${name}`, (await writer.get(`${path}/${name}`)).data.toString());
    }
    const held = () => new Map([...cache.nodes].map(([at, { data }]) => [at, data.toString()]));
    await until("it holds the same", () => {
      const now = held();
      return now.size === wanted.size && [...wanted].every(([at, data]) => now.get(at) === data);
    });
    await cache.close();
  });

  it("read again what changed during a lost connection, and report that they were in doubt", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      await writer.create(path);
      for (const name of ["a", "b", "c"]) await writer.create(`${path}/${name}`, "1");
      const cache = new TreeCache(await clients.connect({}, proxy.address), path);
      await cache.ready;
      const told = record(cache, path);
      proxy.refuse();
      await until("it is in doubt", () => !cache.fresh);
      await writer.delete(`${path}/a`);
      await writer.set(`${path}/b`, "2");
      await writer.delete(`${path}/c`);
      await writer.create(`${path}/c`, "new");
      await writer.create(`${path}/d`, "3");
      proxy.accept();
      await until("it is fresh again", () => cache.fresh);
      expect(told[0]).toBe("stale");
      expect(told.slice(1, -1).sort()).toEqual([
        "added ~/c new",
        "added ~/d 3",
        "changed ~/b 2",
        "removed ~/a 1",
        "removed ~/c 1",
      ]);
      expect(told.at(-1)).toBe("fresh");
      await cache.close();
    } finally {
      await proxy.close();
    }
  });

  it("continue in the next session", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      await writer.create(path, "1");
      const zk = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
      const cache = new NodeCache(zk, path);
      await cache.ready;
      const { session } = zk;
      proxy.refuse();
      await until("the session is over", () => session.state === "ended");
      await writer.set(path, "2");
      proxy.accept();
      await until("it has read again", () => cache.fresh && cache.node?.data.toString() === "2");
      await writer.set(path, "3");
      await until("it is told again", () => cache.node?.data.toString() === "3");
      await cache.close();
    } finally {
      await proxy.close();
    }
  });

  it("close if there is more than their limit", async () => {
    await writer.create(path);
    for (let name = 0; name < 10; name++) await writer.create(`${path}/${name}`, Buffer.alloc(100));
    const many = new TreeCache(reader, path, { maxNodes: 5 });
    await expect(many.ready).rejects.toMatchObject({ code: "CACHE_FULL", path });
    const large = new ChildrenCache(reader, path, { maxBytes: 500 });
    await expect(large.ready).rejects.toMatchObject({ code: "CACHE_FULL", path });
    const grown = new TreeCache(reader, path, { maxNodes: 11 });
    const trouble = new Promise((resolve) => grown.listen({ trouble: resolve }));
    await grown.ready;
    await writer.create(`${path}/one-more`);
    expect(await trouble).toMatchObject({ code: "CACHE_FULL" });
    await until("it has closed", () => !grown.fresh);
    await Promise.all([many.close(), large.close(), grown.close()]);
  });

  it("stay open while the existing nodes are within the limit, however many are created and deleted", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      await writer.create(path);
      const cache = new TreeCache(await clients.connect({}, proxy.address), path, { maxNodes: 10 });
      await cache.ready;
      proxy.pause("toClient"); // delivers all events at once
      for (let name = 0; name < 300; name++) {
        await writer.create(`${path}/${name}`);
        if (name >= 9) await writer.delete(`${path}/${name - 9}`);
      }
      proxy.resume();
      const wanted = [path, ...Array.from({ length: 9 }, (_, index) => `${path}/${291 + index}`)].sort();
      await until("it holds what is there", () => [...cache.nodes.keys()].sort().join() === wanted.join());
      await until("it is fresh", () => cache.fresh);
      await cache.close();
    } finally {
      await proxy.close();
    }
  });

  it("keep the other nodes current if one is unreadable, and report that once", async () => {
    await writer.create(path);
    await writer.create(`${path}/open`, "1");
    await writer.create(`${path}/closed`, "1", { acl: [{ scheme: "world", id: "anyone", permissions: ["write"] }] });
    for (const Cache of [TreeCache, ChildrenCache]) {
      const cache = new Cache(reader, path);
      const troubles: unknown[] = [];
      const stale: string[] = [];
      cache.listen({
        trouble: (error) => troubles.push(error),
        event: ({ type }) => type === "stale" && stale.push(type),
      });
      await cache.ready;
      await writer.set(`${path}/closed`, "2");
      await writer.set(`${path}/open`, "2");
      const open = () => (cache instanceof TreeCache ? cache.get(`${path}/open`) : cache.get("open"));
      await until("the other is known", () => open()?.data.toString() === "2");
      expect(cache.fresh).toBe(true);
      expect(stale).toEqual([]);
      expect(troubles).toEqual([expect.objectContaining({ code: "NO_AUTH", path: `${path}/closed` })]);
      await writer.set(`${path}/open`, "1");
      await cache.close();
    }
  });

  it("report why they cannot open: no permission, an invalid path, already closed", async () => {
    expect(() => new NodeCache(reader, "x")).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
    await writer.create(path, "1", { acl: [{ scheme: "world", id: "anyone", permissions: ["admin"] }] });
    const cache = new NodeCache(reader, path);
    await expect(cache.ready).rejects.toMatchObject({ code: "NO_AUTH", path });
    const closed = new NodeCache(reader, path);
    const { ready } = closed;
    await closed.close();
    await expect(ready).rejects.toMatchObject({ code: "CLOSED" });
    await cache.close();
  });

  it("work under a chroot, and at its root", async () => {
    await writer.create(path);
    const zk = await clients.connect({}, `${sharedServer()}${path}`);
    const tree = new TreeCache(zk, "/");
    const children = new ChildrenCache(zk, "/");
    await Promise.all([tree.ready, children.ready]);
    await writer.create(`${path}/a`, "1");
    await writer.create(`${path}/a/b`, "2");
    await until("both know", () => tree.get("/a/b") && children.get("a"));
    expect([...tree.nodes.keys()].sort()).toEqual(["/", "/a", "/a/b"]);
    expect(tree.children("/")).toEqual(["a"]);
    expect(children.names).toEqual(["a"]);
    await Promise.all([tree.close(), children.close()]);
  });

  it("share a path within one client, whether or not they watch its descendants", async () => {
    await writer.create(path, "1");
    const one = new NodeCache(reader, path);
    const two = new NodeCache(reader, path);
    await Promise.all([one.ready, two.ready]);
    const tree = new TreeCache(reader, path);
    await tree.ready;
    await one.close();
    await writer.set(path, "2");
    await writer.create(`${path}/below`);
    await until("both go on", () => two.node?.data.toString() === "2" && tree.get(`${path}/below`));
    await tree.close();
    await writer.set(path, "3");
    await until("the node's cache goes on alone", () => two.node?.data.toString() === "3");
    const again = new TreeCache(reader, path);
    await again.ready;
    await writer.set(`${path}/below`, "4");
    await until("the tree's goes on", () => again.get(`${path}/below`)?.data.toString() === "4");
    await Promise.all([again.close(), two.close()]);
  });
});
