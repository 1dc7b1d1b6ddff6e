/** Tests of events at an unfavourable moment: while a connection is opened, a session ends, or a watch is closed. */
import { getEventListeners } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { ConnectOptions, OnceEvent, ZooKeeper } from "../../src/index.ts";
import { connect } from "../../src/index.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { Clients, endingSessionMs, until } from "../recipes/stage.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath } from "../support/servers.ts";
import { OldServer } from "./old-server.ts";

const sessionTimeoutMs = endingSessionMs;

describe("the client, at critical moments", () => {
  let ensemble: Ensemble;
  let proxy: ZooKeeperProxy;
  let clients: Clients;
  beforeAll(async () => {
    ensemble = await Ensemble.start({ tickTime: 100 });
  });
  afterAll(() => ensemble?.stop());
  beforeEach(async () => {
    proxy = await ZooKeeperProxy.before(ensemble.server.address);
    clients = new Clients(proxy.address);
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await clients.closeAll();
    await proxy.close();
  });

  const through = (options: ConnectOptions = {}): Promise<ZooKeeper> =>
    clients.connect({ sessionTimeoutMs, ...options });
  const auth = [{ scheme: "digest", credentials: "ann:secret" }];

  test("aborted while it logs in: no connection is left", async () => {
    void proxy.swallowReply(op.auth, "silence");
    await expect(connect(proxy.address, { auth, connectTimeoutMs: 300 })).rejects.toMatchObject({
      code: "UNREACHABLE",
    });
    await until("its connection has ended", () => proxy.open === 0);
  });

  test("the session ends while it logs in: a new session follows", async () => {
    const zk = await through({ auth });
    const first = zk.session;
    const swallowed = proxy.swallowReply(op.auth, "silence");
    proxy.reset();
    await swallowed;
    await until("the session has ended", () => first.signal.aborted);
    expect((await zk.established()).id).not.toBe(first.id);
    await until("one connection is left", () => proxy.open === 1);
  });

  test("credentials added while it logs in apply to that connection", async () => {
    const zk = await through({ auth });
    const logsIn = proxy.next(op.auth);
    proxy.delay(50);
    proxy.reset();
    await logsIn;
    await zk.addAuth("digest", "bob:secret");
    const known = (await zk.whoAmI()).filter(({ scheme }) => scheme === "digest").map(({ id }) => id);
    expect(known.map((id) => id.split(":")[0]).toSorted()).toEqual(["ann", "bob"]);
  });

  test("credentials added by a listener for the session's end apply to the next session", async () => {
    const zk = await through();
    const { session } = zk;
    const added = new Promise<void>((resolve, reject) => {
      session.onState((state) => {
        if (state === "ended") zk.addAuth("digest", "ann:secret").then(resolve, reject);
      });
    });
    const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now() + sessionTimeoutMs);
    expect(session.live).toBe(false);
    clock.mockRestore();
    await added;
    await zk.established();
    expect((await zk.whoAmI()).map(({ scheme }) => scheme)).toContain("digest");
  });

  test("a lost connection does not invalidate credentials", async () => {
    const zk = await through();
    const swallowed = proxy.swallowReply(op.auth, "reset");
    await zk.addAuth("digest", "ann:secret");
    await swallowed;
    await until("they are told again", async () =>
      (await zk.whoAmI()).some(({ scheme, id }) => scheme === "digest" && id.startsWith("ann")),
    );
  });

  test("a call after the session expired by the clock gets the next session, even if an answer comes late", async () => {
    const zk = await through();
    const first = zk.session;
    const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now() + sessionTimeoutMs);
    expect(first.live).toBe(false);
    const next = zk.established();
    clock.mockRestore();
    expect((await next).id).not.toBe(first.id);
    expect(first.signal.aborted).toBe(true);
  });

  test("listeners that throw disturb nothing, and their errors surface", async () => {
    const others = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    const surfaced: string[] = [];
    const collect = (error: Error) => surfaced.push(error.message);
    process.on("uncaughtException", collect);
    try {
      const throwing = (what: string) => () => {
        throw new Error(what);
      };
      const zk = await through({
        log: () => {
          throw new Error("log");
        },
      });
      const path = ownPath();
      await zk.create(path);
      await zk.get(path, { watch: throwing("once") });
      const before = proxy.accepted;
      const told: string[] = [];
      await zk.get(path, { watch: ({ type }) => told.push(type) });
      await zk.set(path, "x");
      await until("both were told", () => told.length === 1 && surfaced.includes("once"));
      expect(proxy.accepted).toBe(before);
      const session = zk.session;
      session.onState(throwing("state"));
      zk.onSession(throwing("session"));
      await zk.get(path, { watch: throwing("ended") });
      proxy.refuse();
      await until("the session has ended", () => session.signal.aborted);
      proxy.accept();
      expect((await zk.established()).id).not.toBe(session.id);
      for (const what of ["log", "state", "session", "ended"]) {
        await until(`${what} surfaced`, () => surfaced.includes(what));
      }
      await zk.close();
    } finally {
      process.off("uncaughtException", collect);
      for (const other of others) process.on("uncaughtException", other);
    }
  });

  test("a read's watch that a persistent watch served is notified of that watch's end", async () => {
    const zk = await through();
    const path = ownPath();
    await zk.create(path);
    const persistent = await zk.watch(path);
    const events: OnceEvent["type"][] = [];
    const reading = zk.get(path, { watch: ({ type }) => events.push(type) });
    await persistent.close();
    await reading;
    await zk.set(path, "x");
    await until("it was told", () => events.length > 0);
    expect(events.length).toBe(1);
  });

  test("a watch set right after a removal is kept", async () => {
    const zk = await through();
    const path = ownPath();
    await zk.create(path);
    const events: string[] = [];
    await zk.get(path, { watch: ({ type }) => events.push(`first ${type}`) });
    proxy.pause("toClient"); // makes both answers arrive at the same time
    const removed = zk.removeWatches(path);
    const read = zk.get(path, { watch: ({ type }) => events.push(`second ${type}`) });
    const asked = proxy.requests(op.getData);
    await until("both are asked", () => proxy.requests(op.getData) > asked || proxy.requests(18) > 0);
    proxy.resume();
    await Promise.all([removed, read]);
    await zk.set(path, "x");
    await until("both were told", () => events.length === 2);
    expect(events).toEqual(["first ended", "second changed"]);
  });

  test("a watch aborted while it is requested is not left on the server", async () => {
    const zk = await through();
    const path = ownPath();
    await zk.create(path);
    const control = new AbortController();
    const asked = proxy.next(op.addWatch);
    const watching = zk.watch(path, { recursive: true, signal: control.signal });
    watching.catch(() => undefined); // its rejection is checked below
    await asked;
    control.abort();
    await expect(watching).rejects.toMatchObject({ code: "ABORTED" });
    await until("nobody watches", async () => !(await ensemble.server.watched()).has(path));
    // The watch must stay removed: no request to set it may reach the server after the request to remove it.
    await zk.sync(path);
    expect((await ensemble.server.watched()).has(path)).toBe(false);
  });

  test("a watch aborted while an earlier read is unanswered does not remove that read's watch", async () => {
    const zk = await through();
    const path = ownPath();
    await zk.create(path);
    const events: string[] = [];
    const control = new AbortController();
    proxy.pause("toClient");
    const asked = proxy.next(op.addWatch);
    const reading = zk.get(path, { watch: ({ type }) => events.push(type) });
    const watching = zk.watch(path, { signal: control.signal });
    await asked;
    control.abort();
    await expect(watching).rejects.toMatchObject({ code: "ABORTED" });
    await until("nobody watches", async () => !(await ensemble.server.watched()).has(path));
    proxy.resume();
    await reading;
    await zk.set(path, "x");
    await until("it was told", () => events.length > 0);
    expect(events).toEqual(["changed"]);
  });

  test("changes during a delayed login are still reported to watches", async () => {
    const zk = await through({ auth });
    const path = ownPath();
    await zk.create(path);
    const events: string[] = [];
    await zk.children(path, { watch: ({ type }) => events.push(type) });
    const [asked, answered] = [proxy.onRequest, proxy.onReply];
    let logIn: (() => void) | undefined;
    proxy.onRequest = (pair, frame) => {
      const passing = asked(pair, frame);
      if (logIn || frame?.readInt32BE(4) !== op.auth) return passing;
      const length = Buffer.alloc(4);
      length.writeInt32BE(frame.length);
      const held = Buffer.concat([length, frame]);
      logIn = () => pair.upstream.write(held);
      return 0;
    };
    let signs = 0;
    proxy.onReply = (pair, frame) => {
      if (logIn && frame?.readInt32BE(0) === -2) signs++;
      return answered(pair, frame);
    };
    proxy.reset();
    await until("it logs in", () => logIn);
    const writer = await clients.connect({}, ensemble.connectString());
    await writer.create(`${path}/child`);
    await until("the server has given a sign of life", () => signs > 0);
    logIn?.();
    await until("it was told", () => events.length > 0);
    expect(events).toEqual(["children"]);
  });

  test("with a server that does not restore watches, they fire so that waiting callers read again", async () => {
    await using old = await OldServer.start();
    const zk = await clients.connect({ sessionTimeoutMs: 10_000 }, old.address);
    const events: string[] = [];
    const told = ({ type, path }: OnceEvent) => events.push(`${type} ${path}`);
    await zk.exists("/missing", { watch: told });
    old.reset();
    await until("it was told", () => events.length > 0);
    expect(events).toEqual(["changed /missing"]);
    expect(await zk.exists("/missing")).toBeUndefined();
    expect(old.accepted).toBe(2);
  });

  test("one abort signal for very many calls is neither a leak nor causes a warning", async () => {
    const zk = await through();
    const path = ownPath();
    await zk.create(path);
    const warnings: string[] = [];
    const warned = (warning: Error) => warnings.push(warning.message);
    process.on("warning", warned);
    try {
      const { signal } = new AbortController();
      await Promise.all(Array.from({ length: 100 }, () => zk.get(path, { signal })));
      expect(getEventListeners(signal, "abort")).toEqual([]);
      proxy.refuse();
      const { session } = zk;
      await until("the session has ended", () => session.signal.aborted);
      const waiting = Promise.all(Array.from({ length: 100 }, () => zk.established(signal)));
      proxy.accept();
      await waiting;
      expect(getEventListeners(signal, "abort")).toEqual([]);
      expect(getEventListeners(zk.signal, "abort")).toEqual([]);
      await new Promise(setImmediate); // Node emits warnings one turn later
      expect(warnings).toEqual([]);
    } finally {
      process.off("warning", warned);
    }
  });

  test("waiting requests are bounded in bytes, within one turn and while disconnected", async () => {
    // The timeout is long enough that the session does not end while 64 MB are written.
    const zk = await through({ sessionTimeoutMs: 60_000 });
    const path = ownPath();
    await zk.create(path);
    const big = Buffer.alloc(1_000_000);
    const flood = () => Promise.allSettled(Array.from({ length: 100 }, () => zk.set(path, big)));
    const codes = async (results: ReturnType<typeof flood>) =>
      (await results).map((one) => (one.status === "rejected" ? one.reason.code : "done"));
    proxy.pause("toServer"); // the server gets none of these writes, because 64 MB would be too much for a small server
    const connected = flood();
    await new Promise(setImmediate);
    proxy.refuse();
    const lost = await codes(connected);
    expect(new Set(lost)).toEqual(new Set(["CONNECTION_LOSS", "OVERLOADED"]));
    expect(lost.filter((code) => code === "OVERLOADED").length).toBeGreaterThan(20);
    await until("it is suspended", () => zk.session.state === "suspended");
    const suspended = flood();
    await zk.close();
    const closed = await codes(suspended);
    expect(new Set(closed)).toEqual(new Set(["CLOSED", "OVERLOADED"]));
    expect(closed.filter((code) => code === "OVERLOADED").length).toBeGreaterThan(20);
  });
});
