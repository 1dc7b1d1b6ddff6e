import { describe, expect, test } from "vitest";
import { connect } from "../../src/index.ts";
import { protectedCreate } from "../../src/recipes/base/protect.ts";
import { op } from "../../src/wire/codes.ts";
import { ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";

describe(`protected nodes, ${serverTitle()}`, () => {
  test("a node whose answer was lost is found again, and exists once", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await connect(proxy.address, { sessionTimeoutMs: 10_000 });
    const path = ownPath("protect");
    await zk.create(path);
    const swallowed = proxy.swallowReply(op.create2, "reset");
    const { path: node, stat } = await protectedCreate(zk.session, path, "lock-", "x", { ephemeral: true });
    await swallowed;
    expect(stat.ephemeralOwner).toBe(zk.session.id);
    expect((await zk.children(path)).names.map((name) => `${path}/${name}`)).toEqual([node]);
    await zk.close();
  });

  test("an abort during the search for a node whose answer was lost leaves no node", async () => {
    await using proxy = await ZooKeeperProxy.before(sharedServer());
    const zk = await connect(proxy.address, { sessionTimeoutMs: 20_000 });
    const path = ownPath("protect");
    await zk.create(path);
    const controller = new AbortController();
    const swallowed = proxy.swallowReply(op.create2, "reset");
    const creating = protectedCreate(zk.session, path, "lock-", "x", { ephemeral: true, signal: controller.signal });
    await swallowed;
    proxy.refuse();
    await expect.poll(() => zk.session.state).toBe("suspended");
    controller.abort();
    await expect(creating).rejects.toMatchObject({ code: "ABORTED" });
    proxy.accept();
    await expect.poll(async () => (await zk.children(path)).names).toEqual([]);
    await zk.close();
  });
});
