import net from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, Mutex, Queue, type SessionState } from "../../src/index.ts";
import { openAcl } from "../../src/operations/acl.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { ZooKeeperProxy } from "../support/proxy.ts";
import { serverTitle } from "../support/servers.ts";
import { until } from "../support/until.ts";

/**
 * Session timeouts in ms, long enough that no session ends when the machine pauses for two seconds. Tests that wait for the end of a
 * session use the shortest timeout.
 */
const shortestMs = 6_000;
const longestMs = 60_000;

let ensemble: Ensemble;

beforeAll(async () => {
  const config = { minSessionTimeout: shortestMs, maxSessionTimeout: longestMs };
  ensemble = await Ensemble.start({ servers: 1, tickTime: 200, config });
});
afterAll(() => ensemble.stop());

describe(`session, ${serverTitle()}`, () => {
  test("states from start to end, the negotiated timeout, a chroot", async () => {
    for (const [asked, allowed] of [
      [shortestMs - 1_000, shortestMs],
      [shortestMs + 1_000, shortestMs + 1_000],
      [longestMs + 1_000, longestMs],
    ] as const) {
      const one = await connect(ensemble.connectString(), { sessionTimeoutMs: asked });
      expect(one.session.timeoutMs).toBe(allowed);
      await one.close();
    }
    const zk = await connect(ensemble.connectString(), { sessionTimeoutMs: 30_000 });
    await zk.create("/chroot");
    const below = await connect(ensemble.connectString("/chroot"), { sessionTimeoutMs: 30_000 });
    expect((await below.create("/a/", "", { sequential: true }).catch((error) => error)).code).toBe("NO_NODE");
    expect((await below.create("/a-", "", { sequential: true })).path).toMatch(/^\/a-\d{10}$/);
    expect((await zk.children("/chroot")).names).toHaveLength(1);
    const states: SessionState[] = [];
    below.session.onState((state) => states.push(state));
    expect(below.session).toMatchObject({ state: "connected", live: true });
    await below.close();
    expect(states).toEqual(["ended"]);
    await zk.close();
  });

  test("a name is resolved until it has a serving address, and again after each lost connection", async () => {
    const [, port] = ensemble.server.address.split(":");
    const answers = [["127.0.0.1"], []];
    let asked = 0;
    const resolve = async () => {
      asked += 1;
      return answers.pop() ?? ["127.0.0.1"];
    };
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    const through = proxy.address.split(":")[1];
    const zk = await connect(`ensemble.invalid:${through}`, { sessionTimeoutMs: 10_000, resolve });
    expect(asked).toBe(2);
    const { id } = zk.session;
    proxy.reset();
    expect((await zk.exists("/"))?.cversion).toBeDefined();
    expect([zk.session.id, asked]).toEqual([id, 3]);
    await zk.close();
    await expect(connect(`ensemble.invalid:${port}`, { connectTimeoutMs: 3_000 })).rejects.toMatchObject({
      code: "UNREACHABLE",
      message: expect.stringMatching(/getaddrinfo|no address/),
    });
  });

  test("SASL to a server without SASL fails with that reason", async () => {
    const sasl = { username: "bob", password: "secret" };
    await expect(connect(ensemble.connectString(), { sasl })).rejects.toMatchObject({
      code: "AUTH_FAILED",
      message: expect.stringMatching(/not set up for SASL/),
      hint: expect.stringMatching(/JAAS/),
    });
  });

  test("a missing chroot is named in errors, or created on request", async () => {
    const away = await connect(ensemble.connectString("/away/deep"));
    for (const call of [
      away.create("/a"),
      away.get("/"),
      away.children("/"),
      away.eachChild("/", () => undefined),
      away.set("/", "x"),
      away.getAcl("/"),
      away.setAcl("/", openAcl),
      away.transaction().create("/a").create("/a/b").commit(),
      away.transaction().set("/", "x").commit(),
      new Mutex(away, "/lock").acquire(),
      new Queue(away, "/queue").put("x"),
    ]) {
      await expect(call).rejects.toMatchObject({
        code: "NO_NODE",
        message: expect.stringContaining("the chroot /away/deep does not exist"),
        hint: expect.stringContaining("createChroot"),
      });
    }
    await expect(away.transaction().create("/a/b").commit()).rejects.toMatchObject({
      code: "NO_NODE",
      message: expect.not.stringContaining("chroot"),
    });
    await expect(away.create("/a/b")).rejects.toMatchObject({
      code: "NO_NODE",
      hint: expect.stringContaining("parents"),
    });
    await away.close();
    for (let times = 0; times < 2; times++) {
      const zk = await connect(ensemble.connectString("/away/deep"), { createChroot: true });
      await (await new Mutex(zk, "/lock").acquire()).release();
      await zk.close();
    }
  });

  test("state listeners are called across sessions, with the state's session", async () => {
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    const zk = await connect(proxy.address, { sessionTimeoutMs: shortestMs });
    const told: [SessionState, bigint][] = [];
    const stop = zk.onState((state, session) => told.push([state, session.id]));
    const { session } = zk;
    proxy.pause();
    await expect.poll(() => session.live).toBe(false);
    proxy.resume();
    const next = await zk.established();
    expect(told.filter(([, id]) => id === session.id).map(([state]) => state)).toEqual(["suspended", "ended"]);
    expect(told.at(-1)).toEqual(["connected", next.id]);
    stop();
    await zk.close();
    expect(told.at(-1)).toEqual(["connected", next.id]);
  });

  test("a lost connection is restored in the same session: reads are repeated, writes fail as in doubt", async () => {
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    const zk = await connect(proxy.address, { sessionTimeoutMs: 30_000 });
    await zk.create("/lost", "1", { ephemeral: true });
    const { id } = zk.session;
    proxy.pause();
    const read = zk.get("/lost");
    const write = zk.set("/lost", "2").catch((error) => error);
    await proxy.next(5);
    proxy.reset();
    proxy.resume();
    const waiting = zk.exists("/lost");
    expect((await read).data.toString()).toMatch(/^[12]$/);
    expect(await write).toMatchObject({ code: "CONNECTION_LOSS", path: "/lost" });
    expect(await waiting).toMatchObject({ ephemeralOwner: id });
    expect(zk.session.id).toBe(id);
    await zk.close();
  });

  test("with a hanging server the session ends on the client first, and the next session is a new one", async () => {
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    const zk = await connect(proxy.address, { sessionTimeoutMs: shortestMs });
    const { session } = zk;
    await session.create("/hangs", "", { ephemeral: true });
    const watcher = await connect(ensemble.connectString(), { sessionTimeoutMs: 30_000 });
    proxy.pause();
    const asked = session.get("/hangs").catch((error) => error);
    await until("the session has ended", () => session.signal.aborted);
    expect(await watcher.exists("/hangs")).toMatchObject({ ephemeralOwner: session.id });
    expect(session).toMatchObject({ state: "ended", live: false, remainingMs: 0 });
    expect(await asked).toMatchObject({ code: "SESSION_EXPIRED", path: "/hangs" });
    await expect(session.set("/hangs", "")).rejects.toMatchObject({ code: "SESSION_EXPIRED" });
    expect(zk.session).not.toBe(session);
    proxy.resume();
    const next = await zk.established();
    expect(next.id).not.toBe(session.id);
    // When the new session begins, the old one's ephemeral node has been deleted, so its name is free.
    expect((await next.create("/hangs", "", { ephemeral: true })).stat.ephemeralOwner).toBe(next.id);
    await Promise.all([zk.close(), watcher.close()]);
  });

  test("a call that a live server never answers settles, and the session continues on another server", async () => {
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    const zk = await connect(proxy.address, { sessionTimeoutMs: shortestMs });
    const { id } = zk.session;
    await zk.create("/stuck", "1");
    const swallowed = proxy.swallowReply(5, "silence");
    const write = zk.set("/stuck", "2").catch((error) => error);
    await swallowed;
    expect(await write).toMatchObject({ code: "CONNECTION_LOSS", path: "/stuck" });
    expect((await zk.get("/stuck")).data.toString()).toBe("2");
    expect(zk.session.id).toBe(id);
    await zk.close();
  });

  test("close ends the session on the server: its ephemeral nodes are gone at once, and later calls fail", async () => {
    const zk = await connect(ensemble.connectString(), { sessionTimeoutMs: 10_000 });
    const watcher = await connect(ensemble.connectString(), { sessionTimeoutMs: 10_000 });
    await zk.create("/closes", "", { ephemeral: true });
    const before = zk.get("/closes");
    const closing = zk.close();
    const after = zk.get("/closes").catch((error) => error);
    expect(await before).toMatchObject({ stat: { ephemeralOwner: zk.session.id } });
    expect(await after).toMatchObject({ code: "CLOSED", path: "/closes" });
    await closing;
    expect(await watcher.exists("/closes")).toBeUndefined();
    await watcher.close();
  });

  test("without a server, calls fail with UNREACHABLE and the reason after the given time", async () => {
    const server = net.createServer((socket) => socket.resume()).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as net.AddressInfo;
    await expect(connect(`127.0.0.1:${port},127.0.0.1:1`, { connectTimeoutMs: 700 })).rejects.toMatchObject({
      code: "UNREACHABLE",
      message: expect.stringMatching(new RegExp(`127\\.0\\.0\\.1:${port}.* within 700 ms: .`)),
    });
    const signal = AbortSignal.timeout(50);
    await expect(connect(`127.0.0.1:${port}`, { signal })).rejects.toMatchObject({ code: "ABORTED" });
    server.close();
  });

  test("a server that needs longer than the first limit to begin a session gets more time", async () => {
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    // An answer takes 2.4 s. At first a third of the session timeout (2 s) is allowed.
    proxy.delay(1_200);
    const zk = await connect(proxy.address, { sessionTimeoutMs: shortestMs, connectTimeoutMs: 60_000 });
    expect(zk.session.id).not.toBe(0n);
    expect(proxy.accepted).toBeGreaterThan(1);
    await zk.close();
  });

  test("calls reject while a session has ended and no server is back, and the next server serves again", async () => {
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    const lines: string[] = [];
    // The session lasts for the server's minimum timeout. Later calls wait for the next session for the time given here.
    const zk = await connect(proxy.address, { sessionTimeoutMs: 800, log: (line) => lines.push(line) });
    const { session } = zk;
    proxy.refuse();
    proxy.reset();
    await until("the session has ended", () => session.signal.aborted);
    await expect(zk.get("/")).rejects.toMatchObject({ code: "UNREACHABLE", path: "/" });
    expect(lines.length).toBeGreaterThan(1);
    proxy.accept();
    await zk.established();
    expect((await zk.get("/")).stat.version).toBe(0);
    await zk.close();
  });

  test("too many concurrent requests are refused, not queued", async () => {
    await using proxy = await ZooKeeperProxy.before(ensemble.server.address);
    // The timeout is long enough that neither silence nor the session's end rejects a call before `close` does.
    const zk = await connect(proxy.address, { sessionTimeoutMs: 60_000 });
    proxy.pause();
    const data = Buffer.alloc(1_000_000);
    const codes = new Set<string>();
    const calls: Promise<unknown>[] = [];
    for (let index = 0; index < 200 && !codes.has("OVERLOADED"); index++) {
      calls.push(zk.set("/", data).catch((error) => codes.add(error.code)));
      await new Promise(setImmediate);
    }
    expect(codes).toContain("OVERLOADED");
    await zk.close();
    await Promise.all(calls);
    expect([...codes].filter((code) => code !== "OVERLOADED" && code !== "CLOSED")).toEqual([]);
  });
});

describe(`TLS and SASL, ${serverTitle()}`, () => {
  test("TLS works with a client certificate; without one, or with an unknown one, the connection is refused", async () => {
    await using secure = await Ensemble.start({ servers: 1, tickTime: 200, tls: true });
    const { ca, cert, key } = secure.tls!;
    const address = secure.secureConnectString();
    const zk = await connect(address, { tls: { ca, cert, key } });
    await zk.create("/tls", "x".repeat(100_000));
    expect((await zk.get("/tls")).data).toHaveLength(100_000);
    expect((await zk.whoAmI()).map(({ scheme }) => scheme)).toContain("x509");
    await zk.close();
    await expect(connect(address, { tls: { ca }, connectTimeoutMs: 1_500 })).rejects.toMatchObject({
      code: "UNREACHABLE",
    });
    // `connect` rejects at once, long before its timeout.
    await expect(connect(address, { tls: { cert, key }, connectTimeoutMs: 600_000 })).rejects.toMatchObject({
      code: "UNREACHABLE",
      message: expect.stringMatching(/certificate/),
      hint: expect.stringMatching(/tls\.ca/),
    });
    await expect(connect(address, { connectTimeoutMs: 1_000 })).rejects.toMatchObject({ code: "UNREACHABLE" });
  });

  test("SASL DIGEST-MD5: a client with the password can sign in, also after a lost connection", async () => {
    const users = { bob: 'se\\cr"et', eve: "schl\u00fcssel", zoe: "kl\u00ed\u010d" };
    await using secure = await Ensemble.start({ servers: 1, tickTime: 200, sasl: { users } });
    await using proxy = await ZooKeeperProxy.before(secure.server.address);
    for (const username of ["eve", "zoe"] as const) {
      await (await connect(secure.server.address, { sasl: { username, password: users[username] } })).close();
    }
    const sasl = { username: "bob", password: users.bob };
    const zk = await connect(proxy.address, { sasl });
    await zk.create("/sasl", "mine", { acl: [{ scheme: "sasl", id: "bob", permissions: ["read"] }] });
    proxy.reset();
    expect((await zk.get("/sasl")).data.toString()).toBe("mine");
    await zk.close();
    const stranger = await connect(proxy.address);
    await expect(stranger.get("/sasl")).rejects.toMatchObject({ code: "NO_AUTH" });
    await stranger.close();
    await expect(
      connect(proxy.address, { sasl: { username: "bob", password: "wrong" }, connectTimeoutMs: 60_000 }),
    ).rejects.toMatchObject({
      code: "AUTH_FAILED",
    });
  });

  test("with required SASL, a wrong and a missing password give different errors, and are not retried for ever", async () => {
    const sasl = { users: { bob: "right" }, required: true };
    await using secure = await Ensemble.start({ servers: 1, tickTime: 200, sasl });
    const { address } = secure.server;
    await expect(connect(address, { sasl: { username: "bob", password: "wrong" } })).rejects.toMatchObject({
      code: "AUTH_FAILED",
    });
    const stranger = await connect(address);
    await expect(stranger.get("/")).rejects.toMatchObject({ code: "SESSION_CLOSED_REQUIRE_SASL_AUTH" });
    await stranger.close();
    const zk = await connect(address, { sasl: { username: "bob", password: "right" } });
    expect(await zk.exists("/")).toBeDefined();
    await zk.close();
  });
});
