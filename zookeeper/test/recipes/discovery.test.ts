import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { ServiceDiscovery } from "../../src/recipes/discovery/discovery.ts";
import type { NewInstance } from "../../src/recipes/discovery/instance.ts";
import { sticky } from "../../src/recipes/discovery/strategies.ts";
import { ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

describe(`service discovery on ${serverTitle()}`, () => {
  let clients: Clients;
  let zk: ZooKeeper;
  let path: string;
  beforeEach(async () => {
    clients = new Clients();
    zk = await clients.connect();
    path = `${ownPath("discovery")}/services`;
  });
  afterEach(() => clients.closeAll());

  const at = (id: string, port = 80): NewInstance => ({ name: "mail", id, address: "10.0.0.7", port });

  it("registers, changes and removes instances, which other clients read", async () => {
    const discovery = new ServiceDiscovery(zk, path);
    const other = new ServiceDiscovery<{ zone: string }>(await clients.connect(), path);
    expect([await other.names(), await other.instances("mail")]).toEqual([[], []]);
    const a = await discovery.register({ ...at("a"), payload: { zone: "x" } });
    await discovery.register({ ...at("b"), serviceType: "STATIC" });
    const chat = await discovery.register({ name: "chat" });
    expect(await other.names()).toEqual(["chat", "mail"]);
    expect((await zk.get(`${path}/mail/a`)).stat.ephemeralOwner).toBe(zk.session.id);
    expect((await zk.get(`${path}/mail/b`)).stat.ephemeralOwner).toBe(0n);
    const [first, second] = await other.instances("mail");
    expect(first).toEqual(a.instance);
    expect([first?.payload?.zone, second?.serviceType]).toEqual(["x", "STATIC"]);
    await a.update({ port: 81 });
    expect(await other.instance("mail", "a")).toEqual({ ...first, port: 81 });
    await chat.close();
    expect(await other.instance("chat", chat.instance.id)).toBeUndefined();
    await discovery.close();
    expect(await other.instances("mail")).toEqual([]); // the static instance is deleted too
  });

  it("restores its registration in the next session, with its changes", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const far = await clients.connect({ sessionTimeoutMs: endingSessionMs }, proxy.address);
    const one = await new ServiceDiscovery(far, path).register(at("a"));
    const { session } = far;
    proxy.refuse();
    await until("the session is over", () => session.state === "ended");
    await one.update({ port: 81 });
    const discovery = new ServiceDiscovery(zk, path);
    await until("the instance is gone", async () => (await discovery.instances("mail")).length === 0);
    proxy.accept();
    await until("it is back", async () => (await discovery.instance("mail", "a"))?.port === 81);
    await one.close();
  });

  it("provides instances in turn, except those that are down, disabled or filtered out", async () => {
    const discovery = new ServiceDiscovery(zk, path);
    const a = await discovery.register(at("a", 1));
    await discovery.register(at("b", 2));
    const provider = discovery.provider("mail", { downMs: 3_600_000 });
    const stays = discovery.provider("mail", { strategy: sticky(), filter: ({ port }) => port !== 1 });
    const forgives = discovery.provider("mail", { downAfter: 1, downMs: 0 });
    await Promise.all([provider.ready, stays.ready, forgives.ready]);
    expect([1, 2, 3].map(() => provider.get()?.id)).toEqual(["a", "b", "a"]);
    expect([1, 2, 3].map(() => stays.get()?.id)).toEqual(["b", "b", "b"]);
    const [, b] = provider.instances;
    provider.noteError(b!);
    expect(provider.instances).toHaveLength(2);
    provider.noteError(b!);
    expect(provider.instances.map(({ id }) => id)).toEqual(["a"]);
    forgives.noteError(b!);
    expect(forgives.instances).toHaveLength(2);
    await a.update({ enabled: false });
    await until("it is passed over", () => provider.get() === undefined);
    await a.update({ enabled: true });
    await until("it is back", () => provider.get()?.id === "a");
    await discovery.close();
    expect(stays.get()?.id).toBe("b"); // the last contents before `close`
    expect(() => discovery.provider("mail", { downAfter: 0 })).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID" }),
    );
  });

  it("leaves out invalid instances, and reports them", async () => {
    const discovery = new ServiceDiscovery(zk, path);
    await discovery.register(at("a"));
    const cache = discovery.cache("mail");
    let changes = 0;
    const trouble: unknown[] = [];
    cache.listen({ changed: () => changes++, trouble: (error) => trouble.push(error) });
    await cache.ready;
    expect([cache.fresh, cache.instances.map(({ id }) => id), changes]).toEqual([true, ["a"], 1]);
    await zk.create(`${path}/mail/odd`, "no JSON");
    await until("it is told", () => trouble.length === 1);
    expect(trouble[0]).toMatchObject({ code: "DATA_INVALID", path: `${path}/mail/odd` });
    await expect(discovery.instances("mail")).rejects.toMatchObject({ code: "DATA_INVALID" });
    expect(cache.instances).toHaveLength(1);
    await zk.set(`${path}/mail/a`, "spoilt");
    await until("it is left out", () => cache.instances.length === 0);
    await discovery.close();
  });

  it("refuses invalid options and calls with the reason", async () => {
    const discovery = new ServiceDiscovery(zk, path);
    expect(() => new ServiceDiscovery(zk, path, { payload: 1 } as never)).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID" }),
    );
    await expect(discovery.register({ name: "mail", prot: 80 } as never)).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
    await expect(discovery.register(undefined as never)).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(discovery.instances("a/b")).rejects.toMatchObject({ code: "PATH_INVALID" });
    const one = await discovery.register(at("a"));
    await expect(one.update({ name: "chat" } as never)).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await zk.create(`${path}/shut`, "", { acl: [{ scheme: "world", id: "anyone", permissions: ["read"] }] });
    await expect(discovery.register({ name: "shut" })).rejects.toMatchObject({ code: "NO_AUTH" });
    await discovery.close();
  });
});
