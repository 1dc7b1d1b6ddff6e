import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, creatorAcl, digestId, openAcl, readAcl, type ZooKeeper } from "../../src/index.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";

let zk: ZooKeeper;
let root: string;

beforeAll(async () => {
  root = ownPath("operations");
  const admin = await connect(sharedServer());
  await admin.create(root);
  await admin.close();
  zk = await connect(`${sharedServer()}${root}`, { sessionTimeoutMs: 10_000 });
});
afterAll(() => zk.close());

describe(`operations, ${serverTitle()}`, () => {
  test("create, get, set, exists, delete", async () => {
    const made = await zk.create("/node", "one");
    expect(made.path).toBe("/node");
    expect(made.stat).toMatchObject({ version: 0, dataLength: 3, childCount: 0, ephemeralOwner: 0n });
    const read = await zk.get("/node");
    expect(read.data.toString()).toBe("one");
    expect(read.stat.czxid).toBe(made.stat.czxid);
    const changed = await zk.set("/node", Buffer.from([0, 255]), { version: 0 });
    expect(changed.version).toBe(1);
    expect(changed.mzxid).toBeGreaterThan(made.stat.mzxid);
    expect((await zk.get("/node")).data).toEqual(Buffer.from([0, 255]));
    expect(await zk.exists("/node")).toEqual(changed);
    await zk.delete("/node", { version: 1 });
    expect(await zk.exists("/node")).toBeUndefined();
  });

  test("nodes of every kind", async () => {
    const ephemeral = await zk.create("/ephemeral", undefined, { ephemeral: true });
    expect(ephemeral.stat.ephemeralOwner).toBe(zk.session.id);
    const [first, second] = await Promise.all([
      zk.create("/s-", "", { sequential: true }),
      zk.create("/s-", "", { sequential: true, ephemeral: true }),
    ]);
    expect(first.path).toMatch(/^\/s-\d{10}$/);
    expect(second.path > first.path).toBe(true);
    await zk.create("/container", undefined, { container: true });
    await zk.create("/container/child");
    await zk.delete("/container/child");
    await expect.poll(() => zk.exists("/container")).toBeUndefined();
    await zk.create("/short", "x", { ttlMs: 50 });
    await expect.poll(() => zk.exists("/short")).toBeUndefined();
    const kept = await zk.create("/long-", "x", { ttlMs: 1_000_000, sequential: true });
    expect(kept.path).toMatch(/^\/long-\d{10}$/);
  });

  test("wrong, misspelt or invalid arguments are refused, and nothing is changed", async () => {
    const untyped = zk as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;
    await zk.create("/checked", "kept");
    const version = (await zk.exists("/checked"))?.version;
    for (const [name, ...given] of [
      ["create", "/wrong", { ephemeral: true }],
      ["create", "/wrong", null],
      ["create", "/wrong", 7],
      ["create", "/wrong", "", { ephemral: true }],
      ["create", "/wrong", "", "ephemeral"],
      ["create", "/wrong", "", null],
      ["set", "/checked", undefined],
      ["set", "/checked", { version: 0 }],
      ["set", "/checked", "x", { vers: 0 }],
      ["delete", "/checked", 0],
      ["delete", "/checked", { versoin: 9 }],
      ["get", "/checked", { wach: () => undefined }],
      ["exists", "/checked", () => undefined],
      ["children", "/checked", { watch: () => undefined, recursive: true }],
      ["setAcl", "/checked", [], { aversion: 1 }],
      ["watch", "/checked", { recursiv: true }],
      ["multi", [{ type: "set", path: "/checked" }]],
      ["multi", [{ type: "create", path: "/wrong", ephemral: true }]],
      ["multi", [], { version: 1 }],
    ] as const) {
      const call = untyped[name]?.(...given);
      await expect(call, `${name} ${JSON.stringify(given)}`).rejects.toMatchObject({
        code: "OPTION_INVALID",
        hint: expect.stringMatching(/./),
      });
    }
    expect(await zk.exists("/wrong")).toBeUndefined();
    expect((await zk.exists("/checked"))?.version).toBe(version);
  });

  test("children, their count, and ephemeral nodes", async () => {
    await zk.create("/family");
    const names = Array.from({ length: 50 }, (_, index) => `child-${index}`);
    await Promise.all(names.map((name) => zk.create(`/family/${name}`, name, { ephemeral: true })));
    const { names: listed, stat } = await zk.children("/family");
    expect(listed.toSorted()).toEqual(names.toSorted());
    expect(stat.childCount).toBe(50);
    const seen: string[] = [];
    expect(await zk.eachChild("/family", (name) => seen.push(name))).toBe(50);
    expect(seen.toSorted()).toEqual(names.toSorted());
    expect(await zk.descendantCount("/family")).toBe(50);
    expect((await zk.ephemerals("/family")).toSorted()).toEqual(names.map((name) => `/family/${name}`).toSorted());
  });

  test("create with parents, also concurrently, and deleteAll with all descendants", async () => {
    const deep = await zk.create("/tree/of/many", "leaf", { parents: true });
    expect(deep.path).toBe("/tree/of/many");
    expect((await zk.get("/tree/of")).data).toHaveLength(0);
    await expect(zk.create("/tree/of/many", "", { parents: true })).rejects.toMatchObject({ code: "NODE_EXISTS" });
    const paths = Array.from({ length: 600 }, (_, index) => `/tree/${index % 7}/${index % 13}/${index}`);
    await Promise.all(paths.map((path) => zk.create(path, "", { parents: true })));
    expect(await zk.descendantCount("/tree")).toBe(2 + 7 + 7 * 13 + 600);
    const growing = zk.deleteAll("/tree");
    await zk.create("/tree/late/one", "", { parents: true });
    await growing;
    await zk.deleteAll("/tree");
    expect(await zk.exists("/tree")).toBeUndefined();
    await zk.deleteAll("/tree");
    await expect(zk.deleteAll("/")).rejects.toMatchObject({ code: "PATH_INVALID" });
  });

  test("a transaction builds a multi from single calls", async () => {
    const results = await zk
      .transaction()
      .create("/t", "1")
      .create("/t/e", undefined, { ephemeral: true })
      .set("/t", "2", 0)
      .check("/t", 1)
      .delete("/t/e", 0)
      .commit();
    expect(results).toMatchObject([
      { type: "create", path: "/t" },
      { type: "create", path: "/t/e" },
      { type: "set", stat: { version: 1 } },
      { type: "check" },
      { type: "delete" },
    ]);
    await expect(zk.transaction().set("/t", "3").check("/t", 0).commit()).rejects.toMatchObject({
      code: "BAD_VERSION",
    });
    expect((await zk.get("/t")).data.toString()).toBe("2");
  });

  test("a multi is done as a whole or not at all, and names the operation that failed", async () => {
    const results = await zk.multi([
      { type: "create", path: "/m", data: "1" },
      { type: "create", path: "/m/s-", sequential: true },
      { type: "set", path: "/m", data: "2", version: 0 },
      { type: "check", path: "/m", version: 1 },
      { type: "create", path: "/m/gone" },
      { type: "delete", path: "/m/gone" },
    ]);
    expect(results.map(({ type }) => type)).toEqual(["create", "create", "set", "check", "create", "delete"]);
    expect(results[1]).toMatchObject({ path: expect.stringMatching(/^\/m\/s-\d{10}$/) });
    expect((await zk.get("/m")).data.toString()).toBe("2");
    const failing = zk.multi([
      { type: "set", path: "/m", data: "3" },
      { type: "check", path: "/m", version: 77 },
      { type: "delete", path: "/m" },
    ]);
    await expect(failing).rejects.toMatchObject({
      code: "BAD_VERSION",
      path: "/m",
      message: expect.stringContaining("operation 2 of 3"),
    });
    expect((await zk.get("/m")).data.toString()).toBe("2");
    expect(await zk.multi([])).toEqual([]);
  });

  test("errors name the path and a hint", async () => {
    await zk.create("/e");
    await zk.create("/e/ephemeral", "", { ephemeral: true });
    await expect(zk.create("/e")).rejects.toMatchObject({
      code: "NODE_EXISTS",
      path: "/e",
      hint: expect.stringMatching(/./),
    });
    await expect(zk.create("/no/parent")).rejects.toMatchObject({ code: "NO_NODE", path: "/no/parent" });
    await expect(zk.get("/none")).rejects.toMatchObject({
      code: "NO_NODE",
      message: expect.stringContaining("get /none"),
    });
    await expect(zk.delete("/e")).rejects.toMatchObject({ code: "NOT_EMPTY", path: "/e" });
    await expect(zk.set("/e", "", { version: 9 })).rejects.toMatchObject({ code: "BAD_VERSION", path: "/e" });
    await expect(zk.create("/e/ephemeral/x")).rejects.toMatchObject({ code: "NO_CHILDREN_FOR_EPHEMERALS" });
    await expect(zk.create("/e/acl", "", { acl: [] })).rejects.toMatchObject({ code: "INVALID_ACL" });
    await expect(zk.removeWatches("/e")).rejects.toMatchObject({ code: "NO_WATCHER" });
    for (const path of ["", "a", "/a/", "//", "/a//b", "/a/./b", "/..", "/a\u0000", `/${"x".repeat(5_000)}`]) {
      await expect(zk.get(path)).rejects.toMatchObject({ code: "PATH_INVALID", path });
    }
    await expect(zk.create("/big", Buffer.alloc(1_100_000))).rejects.toMatchObject({
      code: "DATA_TOO_LARGE",
      path: "/big",
    });
    await expect(zk.create("/x", "", { ephemeral: true, ttlMs: 5 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(zk.create("/x", "", { ttlMs: 0 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(zk.create("/x", "", { container: true, sequential: true })).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
    await expect(zk.set("/e", "", { version: 1.5 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(zk.watch("/e", { maxWaiting: 0 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });

  test("permissions: digest, ACLs read and changed", async () => {
    const address = `${sharedServer()}${root}`;
    const ann = await connect(address, { auth: [{ scheme: "digest", credentials: "ann:secret" }] });
    await ann.create("/private", "x", { acl: creatorAcl });
    expect((await ann.getAcl("/private")).acl).toEqual([
      { scheme: "digest", id: digestId("ann", "secret"), permissions: ["read", "write", "create", "delete", "admin"] },
    ]);
    expect(await ann.whoAmI()).toContainEqual({ scheme: "digest", id: "ann" });
    await expect(zk.get("/private")).rejects.toMatchObject({ code: "NO_AUTH", path: "/private" });
    await expect(zk.setAcl("/private", openAcl)).rejects.toMatchObject({ code: "NO_AUTH" });
    await ann.setAcl("/private", [...creatorAcl, ...readAcl], { version: 0 });
    expect((await zk.get("/private")).data.toString()).toBe("x");
    await expect(ann.setAcl("/private", openAcl, { version: 0 })).rejects.toMatchObject({ code: "BAD_VERSION" });
    const late = await connect(address);
    await expect(late.set("/private", "y")).rejects.toMatchObject({ code: "NO_AUTH" });
    await late.addAuth("digest", "ann:secret");
    await late.set("/private", "y");
    await expect(late.addAuth("nonsense", "x")).rejects.toMatchObject({ code: "AUTH_FAILED" });
    await Promise.all([ann.close(), late.close()]);
  });

  test("sync, and the ensemble's configuration", async () => {
    await zk.sync("/");
    const { data, stat } = await zk.config();
    expect(stat.dataLength).toBe(data.length);
  });

  test("a call can be aborted before it is sent and while it waits", async () => {
    const before = AbortSignal.abort(new Error("no more"));
    await expect(zk.get("/", { signal: before })).rejects.toMatchObject({ code: "ABORTED" });
    const controller = new AbortController();
    const asked = zk.get("/", { signal: controller.signal });
    controller.abort();
    await expect(asked).rejects.toMatchObject({ code: "ABORTED" });
    expect((await zk.children("/")).stat.version).toBe(0);
  });

  test("after close every call fails with CLOSED", async () => {
    const other = await connect(sharedServer());
    const { session } = other;
    await other.close();
    await expect(other.get("/")).rejects.toMatchObject({ code: "CLOSED" });
    await expect(session.get("/")).rejects.toMatchObject({ code: "CLOSED", path: "/" });
    await expect(other.established()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(other.addAuth("digest", "a:b")).rejects.toMatchObject({ code: "CLOSED" });
    expect([session.state, session.live, session.signal.aborted]).toEqual(["ended", false, true]);
    await other.close();
  });
});
