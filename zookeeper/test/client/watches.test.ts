import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  connect,
  type NodeEvent,
  type OnceEvent,
  PersistentWatcher,
  type Watch,
  type ZooKeeper,
} from "../../src/index.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";

let zk: ZooKeeper;
let other: ZooKeeper;
let root: string;

beforeAll(async () => {
  root = ownPath("watches");
  const admin = await connect(sharedServer());
  await admin.create(root);
  await admin.close();
  zk = await connect(`${sharedServer()}${root}`);
  other = await connect(`${sharedServer()}${root}`);
});
afterAll(() => Promise.all([zk.close(), other.close()]));

/** Returns a listener for a watch that fires once, and a promise of its event. */
function once(): { watch: (event: OnceEvent) => void; fired: Promise<OnceEvent> } {
  let watch: (event: OnceEvent) => void = () => undefined;
  const fired = new Promise<OnceEvent>((resolve) => {
    watch = resolve;
  });
  return { watch, fired };
}

function reader(watch: Watch) {
  const iterator = watch[Symbol.asyncIterator]();
  return {
    async take(count: number): Promise<NodeEvent[]> {
      const events: NodeEvent[] = [];
      while (events.length < count) {
        const next = await iterator.next();
        if (next.done) break;
        events.push(next.value);
      }
      return events;
    },
    next: () => iterator.next(),
  };
}

describe(`watches that fire once, ${serverTitle()}`, () => {
  test("of data, of a missing node, of children", async () => {
    await zk.create("/a", "1");
    const [data, absent, children] = [once(), once(), once()];
    await zk.get("/a", { watch: data.watch });
    expect(await zk.exists("/absent", { watch: absent.watch })).toBeUndefined();
    await zk.children("/a", { watch: children.watch });
    await other.set("/a", "2");
    expect(await data.fired).toEqual({ type: "changed", path: "/a" });
    await other.create("/absent");
    expect(await absent.fired).toEqual({ type: "created", path: "/absent" });
    await other.create("/a/b");
    expect(await children.fired).toEqual({ type: "children", path: "/a" });
    const [gone, gone2] = [once(), once()];
    await zk.exists("/a/b", { watch: gone.watch });
    await zk.children("/a/b", { watch: gone2.watch });
    await other.delete("/a/b");
    expect(await Promise.all([gone.fired, gone2.fired])).toEqual([
      { type: "deleted", path: "/a/b" },
      { type: "deleted", path: "/a/b" },
    ]);
  });

  test("are not set if the read fails, and end with the session", async () => {
    const client = await connect(`${sharedServer()}${root}`);
    const [never, ended] = [once(), once()];
    await expect(client.get("/missing", { watch: never.watch })).rejects.toMatchObject({ code: "NO_NODE" });
    await client.get("/", { watch: ended.watch });
    await other.create("/missing");
    await client.close();
    expect(await ended.fired).toEqual({ type: "ended", path: "/" });
    expect(await Promise.race([never.fired, Promise.resolve("silent")])).toBe("silent");
  });

  test("survive a lost connection, and report what happened meanwhile", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const client = await connect(`${proxy.address}${root}`);
    await client.create("/kept", "1");
    await client.create("/kept/child");
    const missed = [once(), once(), once()] as const;
    await client.get("/kept", { watch: missed[0].watch });
    await client.children("/kept", { watch: missed[1].watch });
    await client.exists("/kept/later", { watch: missed[2].watch });
    // There are so many watches that several requests are needed to set them again.
    const many = Array.from({ length: 2_000 }, (_, index) => ({
      path: `/kept/${"n".repeat(200)}-${index}`,
      ...once(),
    }));
    await Promise.all(many.map(({ path, watch }) => client.exists(path, { watch })));
    proxy.refuse();
    proxy.reset();
    await expect.poll(() => client.session.state).toBe("suspended");
    await other.set("/kept", "2");
    await other.create("/kept/later");
    proxy.accept();
    expect((await Promise.all(missed.map(({ fired }) => fired))).map(({ type }) => type)).toEqual([
      "changed",
      "children",
      "created",
    ]);
    const last = many.at(-1)!;
    await other.create(last.path);
    expect(await last.fired).toEqual({ type: "created", path: last.path });
    expect(proxy.requests(105)).toBeGreaterThan(2);
    await client.close();
  });

  test("report what happened even if the next connection is lost before all watches are set again", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const client = await connect(`${proxy.address}${root}`);
    await client.create("/twice");
    const { watch, fired } = once();
    await client.children("/twice", { watch });
    // These watches fill a first request to set watches again, which is answered. The second request, with other watches, gets no answer.
    const many = Array.from({ length: 1_000 }, (_, index) => `/twice/${"n".repeat(200)}-${index}`);
    await Promise.all(many.map((path) => client.exists(path, { watch: () => undefined })));
    const asked = proxy.onRequest;
    proxy.onRequest = (pair, frame) => {
      const passing = asked(pair, frame);
      const isSecond = frame?.readInt32BE(4) === op.setWatches2 && proxy.requests(op.setWatches2) === 2;
      return isSecond ? 0 : passing;
    };
    proxy.refuse();
    await expect.poll(() => client.session.state).toBe("suspended");
    await other.create("/twice/child");
    proxy.accept();
    await client.get("/"); // answered after the first request to set watches again
    proxy.reset();
    expect(await fired).toEqual({ type: "children", path: "/twice" });
    await client.close();
  });

  test("lose nothing beside a persistent watch on the same path, and neither does that watch", async () => {
    await zk.create("/both", "1");
    const watch = await zk.watch("/both");
    const events = reader(watch);
    const [data, children] = [once(), once()];
    await zk.get("/both", { watch: data.watch });
    await other.set("/both", "2");
    expect(await data.fired).toMatchObject({ type: "changed" });
    await zk.children("/both", { watch: children.watch });
    await other.create("/both/child");
    expect(await children.fired).toMatchObject({ type: "children" });
    await other.set("/both", "3");
    expect((await events.take(3)).map(({ type }) => type)).toEqual(["changed", "children", "changed"]);
    await watch.close();
    const again = once();
    await zk.get("/both", { watch: again.watch });
    await other.set("/both", "4");
    expect(await again.fired).toMatchObject({ type: "changed" });
  });
});

describe(`persistent watches, ${serverTitle()}`, () => {
  test("of one node and its list of children", async () => {
    const watch = await zk.watch("/p");
    const events = reader(watch);
    await other.create("/p", "1");
    await other.set("/p", "2");
    await other.create("/p/c");
    await other.create("/p/c/deep");
    await other.delete("/p/c/deep");
    await other.delete("/p/c");
    await other.delete("/p");
    expect(await events.take(5)).toEqual([
      { type: "created", path: "/p" },
      { type: "changed", path: "/p" },
      { type: "children", path: "/p" },
      { type: "children", path: "/p" },
      { type: "deleted", path: "/p" },
    ]);
    await watch.close();
    expect(await events.next()).toMatchObject({ done: true });
  });

  test("of all descendants, also with a watched read of children there", async () => {
    await zk.create("/r");
    const controller = new AbortController();
    const watch = await zk.watch("/r", { recursive: true, signal: controller.signal });
    const events = reader(watch);
    const children = once();
    await zk.children("/r", { watch: children.watch });
    await other.create("/r/c");
    expect(await children.fired).toEqual({ type: "children", path: "/r" });
    await other.create("/r/c/deep");
    await other.set("/r/c/deep", "x");
    await other.delete("/r/c/deep");
    expect(await events.take(4)).toEqual([
      { type: "created", path: "/r/c" },
      { type: "created", path: "/r/c/deep" },
      { type: "changed", path: "/r/c/deep" },
      { type: "deleted", path: "/r/c/deep" },
    ]);
    controller.abort();
    expect(await events.next()).toMatchObject({ done: true });
  });

  test.each(["first", "second"])(
    "of one node and of all its descendants at once, the recursive one %s",
    async (order) => {
      await using proxy = await ZooKeeperProxy.before(sharedServer());
      const client = await connect(`${proxy.address}${root}`);
      const path = `/both-${order}`;
      await zk.create(path);
      const modes = order === "first" ? [true, false] : [false, true];
      const watches = await Promise.all(modes.map((recursive) => client.watch(path, { recursive })));
      const all = modes[0] ? watches : watches.reverse();
      const [below, single] = all.map(reader) as [ReturnType<typeof reader>, ReturnType<typeof reader>];
      await other.create(`${path}/c`);
      await other.set(`${path}/c`, "1");
      await other.set(path, "1");
      expect(await below.take(3)).toEqual([
        { type: "created", path: `${path}/c` },
        { type: "changed", path: `${path}/c` },
        { type: "changed", path },
      ]);
      expect(await single.take(2)).toEqual([
        { type: "children", path },
        { type: "changed", path },
      ]);
      proxy.reset();
      expect([await below.take(1), await single.take(1)]).toEqual([[{ type: "gap", path }], [{ type: "gap", path }]]);
      await other.delete(`${path}/c`);
      expect(await below.take(1)).toEqual([{ type: "deleted", path: `${path}/c` }]);
      const narrowed = proxy.next(op.addWatch);
      await all[0]?.close();
      await narrowed;
      await other.create(`${path}/d`);
      await other.set(`${path}/d`, "2");
      await other.set(path, "2");
      expect(await single.take(3)).toEqual([
        { type: "children", path },
        { type: "children", path },
        { type: "changed", path },
      ]);
      await client.close();
    },
  );

  test("that continue from session to session, with a gap between", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const client = await connect(`${proxy.address}${root}`, { sessionTimeoutMs: 6_000 });
    const watcher = new PersistentWatcher(client, "/sessions", { recursive: true });
    const events: NodeEvent[] = [];
    watcher.listen({ event: (event) => events.push(event) });
    await watcher.ready;
    await other.create("/sessions");
    await expect.poll(() => events).toEqual([{ type: "created", path: "/sessions" }]);
    const { session } = client;
    proxy.pause();
    await expect.poll(() => session.live).toBe(false);
    proxy.resume();
    await expect.poll(() => events.at(-1)).toEqual({ type: "gap", path: "/sessions" });
    await other.create("/sessions/next");
    await expect.poll(() => events.at(-1)).toEqual({ type: "created", path: "/sessions/next" });
    await watcher.close();
    await expect(client.removeWatches("/sessions")).rejects.toMatchObject({ code: "NO_WATCHER" });
    await client.close();
    const late = new PersistentWatcher(client, "/sessions");
    await expect(late.ready).rejects.toMatchObject({ code: "CLOSED" });
  });

  test.each(["before", "after"])("a watched read of children %s its end is reported", async (when) => {
    await zk.create(`/r-${when}`);
    const children = once();
    const read = () => zk.children(`/r-${when}`, { watch: children.watch });
    if (when === "before") await read();
    const watch = await zk.watch(`/r-${when}`, { recursive: true });
    if (when === "after") await read();
    await watch.close();
    await other.create(`/r-${when}/c`);
    expect(await children.fired).toEqual({ type: "children", path: `/r-${when}` });
    await expect(zk.removeWatches(`/r-${when}`)).rejects.toMatchObject({ code: "NO_WATCHER" });
  });

  test("two watches on one path close one by one, and the server removes its watch with the last", async () => {
    await zk.create("/shared");
    const [first, second] = [await zk.watch("/shared"), await zk.watch("/shared")];
    await first.close();
    const events = reader(second);
    await other.set("/shared", "1");
    expect(await events.take(1)).toEqual([{ type: "changed", path: "/shared" }]);
    await second.close();
    await expect(zk.removeWatches("/shared")).rejects.toMatchObject({ code: "NO_WATCHER" });
  });

  test("removeWatches ends all watches on the path", async () => {
    await zk.create("/removed");
    const watch = await zk.watch("/removed");
    const read = once();
    await zk.get("/removed", { watch: read.watch });
    await zk.removeWatches("/removed");
    expect(await read.fired).toMatchObject({ type: "ended" });
    expect(await reader(watch).next()).toMatchObject({ done: true });
  });

  test("a lost connection gives a gap, and then events again", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const client = await connect(`${proxy.address}${root}`);
    const events = reader(await client.watch("/gap", { recursive: true }));
    proxy.refuse();
    proxy.reset();
    await expect.poll(() => client.session.state).toBe("suspended");
    await other.create("/gap");
    proxy.accept();
    expect(await events.take(1)).toEqual([{ type: "gap", path: "/gap" }]);
    await other.set("/gap", "seen");
    expect(await events.take(1)).toEqual([{ type: "changed", path: "/gap" }]);
    await client.close();
    await expect(events.next()).rejects.toMatchObject({ code: "CLOSED" });
  });

  test("a slow reader gets one gap in place of the excess events", async () => {
    await zk.create("/storm");
    const watch = await zk.watch("/storm", { maxWaiting: 10 });
    for (let index = 0; index < 30; index++) await other.set("/storm", String(index));
    await zk.sync("/storm");
    const events = await reader(watch).take(9);
    expect(events.filter(({ type }) => type === "gap").length).toBeGreaterThan(0);
    expect(events.length).toBeLessThanOrEqual(10);
    await watch.close();
  });
});
