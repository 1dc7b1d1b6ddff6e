import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { GroupMember } from "../../src/recipes/group/group.ts";
import { namesUnder } from "../support/names-under.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

describe(`group membership on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  beforeEach(() => {
    clients = new Clients();
    path = ownPath("group");
  });
  afterEach(() => clients.closeAll());

  const list = (member: GroupMember) => [...member.members].map(([id, data]) => `${id}=${data}`).sort();

  it("shows the members with their data", async () => {
    const told: string[] = [];
    const a = new GroupMember(await clients.connect(), path, "a", "1");
    a.listen({
      joined: (id, data) => told.push(`+${id}=${data}`),
      changed: (id, data) => told.push(`${id}=${data}`),
      left: (id) => told.push(`-${id}`),
    });
    await a.start();
    const b = new GroupMember(await clients.connect(), path, "b", "2");
    await b.start();
    expect(list(b)).toEqual(["a=1", "b=2"]);
    await b.setData("3");
    await until("the new data is seen", () => list(a).includes("b=3"));
    await b.close();
    await until("it has left", () => a.members.size === 1);
    expect(told).toEqual(["+a=1", "+b=2", "b=3", "-b"]);
    const zk = await clients.connect();
    expect((await zk.get(`${path}/a`)).stat.ephemeralOwner).not.toBe(0n);
    await a.close();
    expect(await namesUnder(zk, path)).toEqual([]);
  });

  it("rejoins when its node is deleted, and in a new session, with its latest data", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      const zk = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
      const a = new GroupMember(zk, path, "a", "1");
      await a.start();
      const other = await clients.connect();
      const first = await other.exists(`${path}/a`);
      await other.delete(`${path}/a`);
      await until("it is back", async () => ((await other.exists(`${path}/a`))?.czxid ?? 0n) > first!.czxid);
      const { session } = zk;
      proxy.refuse();
      await until("the session is over", () => session.state === "ended");
      expect(a.fresh).toBe(false);
      await a.setData("2");
      proxy.accept();
      await until("it is in again, by the new session", async () => {
        const stat = await other.exists(`${path}/a`);
        return stat?.ephemeralOwner === zk.session.id && zk.session.id !== session.id;
      });
      await until("it sees itself", () => list(a).join() === "a=2");
      await a.close();
    } finally {
      await proxy.close();
    }
  });

  it("data set during a join is in place once it has joined", async () => {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    try {
      const zk = await clients.connect({}, proxy.address);
      const other = await clients.connect();
      await other.create(path);
      const a = new GroupMember(zk, path, "a", "1");
      const asked = proxy.next(op.create2);
      const starting = a.start();
      await asked;
      await a.setData("2");
      await starting;
      expect((await other.get(`${path}/a`)).data.toString()).toBe("2");
      await a.close();
    } finally {
      await proxy.close();
    }
  });

  it("does not touch another session's node with its id, and takes its place when that node goes", async () => {
    const one = new GroupMember(await clients.connect(), path, "same", "one");
    const two = new GroupMember(await clients.connect(), path, "same", "two");
    await one.start();
    let started = false;
    const starting = two.start().then(() => {
      started = true;
    });
    const zk = await clients.connect();
    await until("its cache shows the other", () => list(two).join() === "same=one");
    expect(started).toBe(false);
    await one.close();
    await starting;
    expect((await zk.get(`${path}/same`)).data.toString()).toBe("two");
    await two.close();
  });

  it("reports why it cannot join", async () => {
    const zk = await clients.connect();
    expect(() => new GroupMember(zk, path, "a/b")).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
    expect(() => new GroupMember(zk, path, "")).toThrow(expect.objectContaining({ code: "PATH_INVALID" }));
    await zk.create(path, undefined, { acl: [{ scheme: "world", id: "anyone", permissions: ["read"] }] });
    const member = new GroupMember(zk, path, "a");
    await expect(member.start()).rejects.toMatchObject({ code: "NO_AUTH" });
    await expect(member.start()).rejects.toMatchObject({ code: "NO_AUTH" });
    await member.close();
    const closed = new GroupMember(zk, path, "b");
    await closed.close();
    await expect(closed.start()).rejects.toMatchObject({ code: "CLOSED" });
  });
});
