import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { PersistentNode, type PersistentNodeOptions } from "../../src/recipes/base/persistent-node.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

describe(`persistent node, ${serverTitle()}`, () => {
  let clients: Clients;
  let other: ZooKeeper;
  let path: string;
  beforeEach(async () => {
    clients = new Clients();
    other = await clients.connect();
    path = `${ownPath("kept")}/some/node`;
  });
  afterEach(() => clients.closeAll());

  const read = async (at: string) => {
    const { data, stat } = await other.get(at);
    return { text: data.toString(), owner: stat.ephemeralOwner, czxid: stat.czxid };
  };
  const there = async (at: string) => (await other.exists(at)) !== undefined;

  it("creates its node with its parents, and again if it is deleted", async () => {
    const zk = await clients.connect();
    const created: string[] = [];
    const node = new PersistentNode(zk, path, "first");
    node.listen({ created: (at) => created.push(at) });
    await node.start();
    const first = await read(path);
    expect(first).toMatchObject({ text: "first", owner: zk.session.id });
    await node.setData("second");
    await other.delete(path);
    await until("it is back", async () => (await there(path)) && (await read(path)).czxid > first.czxid);
    expect((await read(path)).text).toBe("second");
    await until("both are told", () => created.length === 2);
    expect(created).toEqual([path, path]);
    await node.close();
    expect(await there(path)).toBe(false);
    await expect(node.start()).rejects.toMatchObject({ code: "CLOSED" });
  });

  it("allows other clients to change the data while the node exists", async () => {
    const node = new PersistentNode(await clients.connect(), path, "mine");
    await node.start();
    await other.set(path, "theirs");
    await other.delete(path); // the event of this deletion comes after the event of the change
    await until("it is back, with its own data", async () => (await there(path)) && (await read(path)).text === "mine");
    await other.set(path, "theirs");
    await node.setData("mine again");
    expect((await read(path)).text).toBe("mine again");
    await other.set(path, "theirs");
    const { session } = other;
    await session.sync(path);
    expect((await read(path)).text).toBe("theirs");
    await node.close();
  });

  it.each<{ options: PersistentNodeOptions; stays: boolean }>([
    { options: {}, stays: false },
    { options: { sequential: true }, stays: false },
    { options: { mode: "persistent" }, stays: true },
    { options: { mode: "persistent", sequential: true }, stays: true },
    { options: { mode: "persistent", ttlMs: 3_600_000 }, stays: true },
    { options: { mode: "container" }, stays: true },
  ])("continues in the next session with its own data set again: $options", async ({ options, stays }) => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    const node = new PersistentNode(zk, path, "first", options);
    await node.start();
    const at = node.path;
    if (options.sequential) expect(at).toMatch(/\/_c_[\da-f-]{36}-node\d{10}$/);
    const before = await read(at);
    const { session } = zk;
    proxy.refuse();
    await until("the session is over", () => session.state === "ended");
    if (!stays) await until("its node is gone", async () => !(await there(at)));
    else await other.set(at, "theirs");
    await node.setData("second");
    proxy.accept();
    await until("it is in place again", async () => (await there(at)) && (await read(at)).text === "second");
    const after = await read(at);
    expect(after.czxid === before.czxid).toBe(stays);
    expect(after.owner).toBe(options.mode ? before.owner : zk.session.id);
    expect(node.path).toBe(at);
    await node.close();
    expect(await there(at)).toBe(false);
  });

  it("writes to another session's node, and creates its own when that node goes", async () => {
    const last = await clients.connect();
    await last.create(path, "last", { ephemeral: true, parents: true });
    const zk = await clients.connect();
    const node = new PersistentNode(zk, path, "new");
    await node.start();
    expect(await read(path)).toMatchObject({ text: "new", owner: last.session.id });
    await last.close();
    await until("its own is there", async () => (await there(path)) && (await read(path)).owner === zk.session.id);
    expect((await read(path)).text).toBe("new");
    await node.close();
  });

  it("waits for another session's node to go, if configured", async () => {
    const last = await clients.connect();
    await last.create(path, "last", { ephemeral: true, parents: true });
    const zk = await clients.connect();
    const node = new PersistentNode(zk, path, "new", { existing: "wait" });
    let placed = false;
    const started = node.start().then(() => {
      placed = true;
    });
    await until("it looks", async () => (await zk.session.exists(path)) !== undefined);
    expect([placed, (await read(path)).text]).toEqual([false, "last"]);
    const late = new PersistentNode(await clients.connect(), path, "late", { existing: "wait" });
    const given = late.start();
    await late.close();
    await expect(given).rejects.toMatchObject({ code: "CLOSED" });
    expect(await there(path)).toBe(true);
    await last.close();
    await started;
    expect(await read(path)).toMatchObject({ text: "new", owner: zk.session.id });
    await node.close();
  });

  it("exists once, even if the answer to its creation is lost", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await clients.connect({}, proxy.address);
    await other.create(path.slice(0, path.lastIndexOf("/")), "", { parents: true });
    for (const sequential of [false, true]) {
      proxy.swallowReply(op.create2);
      const node = new PersistentNode(zk, path, "data", { sequential });
      await node.start();
      expect((await read(node.path)).text).toBe("data");
      expect((await other.children(path.slice(0, path.lastIndexOf("/")))).names).toHaveLength(1);
      await node.close();
      expect((await other.children(path.slice(0, path.lastIndexOf("/")))).names).toEqual([]);
    }
  });

  it("deletes a persistent node in the next session if its session ends while it closes", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    const node = new PersistentNode(zk, path, "data", { mode: "persistent" });
    await node.start();
    const { session } = zk;
    proxy.refuse();
    const closed = node.close();
    await until("the session is over", () => session.state === "ended");
    expect(await there(path)).toBe(true);
    proxy.accept();
    await closed;
    expect(await there(path)).toBe(false);
  });

  it("reports a node of another kind, and the obstacle to its own node", async () => {
    const zk = await clients.connect();
    await other.create(path, "", { parents: true });
    const node = new PersistentNode(zk, path, "data");
    const trouble = new Promise((resolve) => node.listen({ trouble: resolve }));
    await node.start();
    expect(await trouble).toMatchObject({ code: "NODE_EXISTS", path });
    await node.close();
    const shut = `${path}-shut`;
    await other.create(shut, "", { acl: [{ scheme: "world", id: "anyone", permissions: ["read", "delete"] }] });
    const refused = new PersistentNode(zk, shut, "data");
    await expect(refused.start()).rejects.toMatchObject({ code: "NO_AUTH" });
    await refused.close();
    expect(await there(shut)).toBe(true);
    const lost = await clients.connect({}, `${sharedServer()}${path}-missing`);
    for (const sequential of [false, true]) {
      const homeless = new PersistentNode(lost, "/node", "", { sequential });
      await expect(homeless.start()).rejects.toMatchObject({ code: "NO_NODE" });
    }
  });

  it("refuses contradictory options", async () => {
    const made = (at: string, options: object) => () => new PersistentNode(other, at, "", options);
    expect(made("/", {})).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
    for (const options of [
      { mode: "sequential" },
      { ephemeral: true },
      { existing: "replace" },
      { existing: "wait", mode: "persistent" },
      { ttlMs: 1_000 },
      { mode: "container", sequential: true },
    ]) {
      expect(made(path, options)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    }
  });
});
