/** Tests with one client, one server and a failing proxy between them: every promise settles, and nothing is doubled or left over. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ConnectOptions, NodeEvent, ZooKeeper } from "../../src/index.ts";
import { protectedCreate } from "../../src/recipes/base/protect.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { Clients, endingSessionMs, until } from "../recipes/stage.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath } from "../support/servers.ts";
import { Child } from "./child.ts";
import { Promises } from "./promises.ts";

const sessionTimeoutMs = endingSessionMs;

describe("the client under faults", () => {
  let ensemble: Ensemble;
  let proxy: ZooKeeperProxy;
  let clients: Clients;
  let path: string;
  beforeAll(async () => {
    ensemble = await Ensemble.start({ tickTime: 100 });
  });
  afterAll(() => ensemble?.stop());
  beforeEach(async () => {
    proxy = await ZooKeeperProxy.before(ensemble.server.address);
    clients = new Clients(proxy.address);
    path = ownPath("fault");
    const zk = await clients.connect({}, ensemble.connectString());
    await zk.create(path);
  });
  afterEach(async () => {
    await clients.closeAll();
    await proxy.close();
    await until("no ephemeral node is left", async () => (await ensemble.server.ephemerals()).size === 0);
  });

  const through = (options: ConnectOptions = {}): Promise<ZooKeeper> =>
    clients.connect({ sessionTimeoutMs, ...options });
  const ownersOf = async (node: string) =>
    [...(await ensemble.server.ephemerals())].filter(([, paths]) => paths.includes(node)).map(([session]) => session);

  test("paused past its session: it knows at once, all calls settle, and a new session begins", async () => {
    await using child = new Child("paused.mjs", "CARILLON_TEST_PAUSED", {
      hosts: proxy.address,
      path,
      sessionTimeoutMs,
    });
    const { session } = await child.next<{ session: string }>("ready");
    expect(await ownersOf(`${path}/own`)).toEqual([`0x${BigInt(session).toString(16)}`]);
    child.send({ say: "stop" });
    const stopped = () => /^\d+ \(.*\) T/.test(readFileSync(`/proc/${child.process.pid}/stat`, "latin1"));
    await until("it has stopped", process.platform === "linux" ? stopped : () => sleep(500, true));
    await until("the server has ended its session", async () => (await ownersOf(`${path}/own`)).length === 0);
    child.signal("SIGCONT");
    const back = await child.next("back");
    expect(back).toMatchObject({
      live: false,
      remainingMs: 0,
      refused: "SESSION_EXPIRED",
      reason: "SESSION_EXPIRED",
      own: false,
    });
    const { outcomes, next } = back as { outcomes: string[]; next: string };
    expect(next).not.toBe(session);
    // Each request was executed before the stop, or rejected because its session had ended or its connection was lost.
    for (const outcome of outcomes) expect(["done", "SESSION_EXPIRED", "CONNECTION_LOSS"]).toContain(outcome);
    expect(await child.gone).toEqual({ code: 0, signal: null });
  });

  test("a process that is paused for two thirds of its session keeps it", async () => {
    const told = { hosts: proxy.address, path, sessionTimeoutMs: 12_000 };
    await using child = new Child("idle.mjs", "CARILLON_TEST_IDLE", told);
    await child.next("ready");
    const [own] = await ownersOf(`${path}/own`);
    child.signal("SIGSTOP");
    await sleep(8_000);
    child.signal("SIGCONT");
    child.send({});
    expect(await child.next("still")).toMatchObject({ live: true, own: true });
    expect(await ownersOf(`${path}/own`)).toEqual([own]);
    // Deletes the node, because the server would keep the killed process's node until the session expires.
    await (await clients.connect({}, ensemble.connectString())).delete(`${path}/own`);
  });

  test("server hangs while connected: all calls settle, and belief ends before the server ends the session", async () => {
    const zk = await through();
    const first = zk.session;
    await zk.create(`${path}/own`, "", { ephemeral: true });
    const promises = new Promises();
    const states: string[] = [];
    first.onState((state) => states.push(state));
    ensemble.server.freeze();
    const got = promises.of("get", zk.get(path));
    const made = promises.of("create", zk.create(`${path}/late`, "", { ephemeral: true }));
    await until("the session has ended", () => first.signal.aborted);
    expect(first.live).toBe(false);
    expect(states).toEqual(["suspended", "ended"]);
    expect(await got).toEqual({ code: "SESSION_EXPIRED" });
    expect([{ code: "CONNECTION_LOSS" }, { code: "SESSION_EXPIRED" }]).toContainEqual(await made);
    const later = promises.of("get, waiting for the next session", zk.get(path));
    ensemble.server.thaw();
    expect(await later).toMatchObject({ value: { stat: expect.anything() } });
    expect(zk.session.id).not.toBe(first.id);
    // The new session began after the old session had ended, whether the client or the server ended it.
    expect(await zk.exists(`${path}/own`)).toBeUndefined();
    await promises.settled();
  });

  test("reply cut within a frame: reads are repeated, writes are in doubt, and nothing is misread", async () => {
    const zk = await through({ sessionTimeoutMs: 20_000 });
    const { id } = zk.session;
    const data = Buffer.alloc(50_000, "abc");
    await zk.set(path, data);
    for (const bytes of [1, 3, 4, 7, 20, 1_000, 49_000]) {
      const cut = proxy.swallowReply(op.getData, { bytes });
      const [one, two] = await Promise.all([zk.get(path), zk.get(path)]);
      await cut;
      expect(one.data.equals(data) && two.data.equals(data)).toBe(true);
    }
    const cut = proxy.swallowReply(op.setData, { bytes: 18 });
    await expect(zk.set(path, "new")).rejects.toMatchObject({ code: "CONNECTION_LOSS", path });
    await cut;
    expect((await zk.get(path)).data.toString()).toBe("new");
    expect(zk.session.id).toBe(id);
  });

  test("lost reply to a create: a plain create fails as in doubt, and a protected node exists once", async () => {
    const zk = await through();
    const promises = new Promises();
    await zk.create(`${path}/line`); // created first, so that the lost create only has to create the node
    for (const aftermath of ["reset", "silence", { bytes: 10 }] as const) {
      const node = `${path}/plain-${typeof aftermath === "string" ? aftermath : "cut"}`;
      const lost = proxy.swallowReply(op.create2, aftermath);
      const creating = promises.of("create", zk.create(node));
      await lost;
      if (aftermath === "silence") await promises.of("exists", zk.exists(node)); // its answer arrives before the create's
      expect(await creating).toEqual({ code: "CONNECTION_LOSS" });
      expect(await zk.exists(node)).toBeDefined();

      const session = await zk.established();
      const lostAgain = proxy.swallowReply(op.create2, aftermath);
      const protecting = protectedCreate(session, `${path}/line`, "lock-", "x", { ephemeral: true });
      await lostAgain;
      if (aftermath === "silence") await promises.of("sync", session.sync(path));
      const created = await protecting;
      expect(created.stat.ephemeralOwner).toBe(session.id);
      const { names } = await zk.children(`${path}/line`);
      expect(names.map((name) => `${path}/line/${name}`)).toEqual([created.path]);
      await zk.delete(created.path);
    }
    await promises.settled();
  });

  test("10 MB of children: a size limit fails only that request", async () => {
    const zk = await through({ sessionTimeoutMs: 20_000 });
    const small = await through({ sessionTimeoutMs: 20_000, maxReplyBytes: 1_000_000 });
    const { id } = small.session;
    const name = (index: number) => `${index}`.padStart(6, "0").padEnd(1_000, "x");
    for (let from = 0; from < 10_000; from += 500) {
      const some = Array.from({ length: 500 }, (_, index) => `${path}/${name(from + index)}`);
      await zk.multi(some.map((one) => ({ type: "create", path: one })));
    }
    const { names } = await zk.children(path);
    expect(names.length).toBe(10_000);
    expect(new Set(names).has(name(9_999))).toBe(true);
    let bytes = 0;
    expect(await zk.eachChild(path, (one) => (bytes += one.length))).toBe(10_000);
    expect(bytes).toBe(10_000_000);

    const accepted = proxy.accepted;
    const around = await Promise.allSettled([
      small.get(path),
      small.children(path, { watch: () => expect.unreachable("the read failed, so there is no watch") }),
      small.get(path),
      small.eachChild(path, () => undefined),
      small.exists(path),
    ]);
    expect(around.map((one) => (one.status === "fulfilled" ? "done" : one.reason.code))).toEqual([
      "done",
      "REPLY_TOO_LARGE",
      "done",
      "REPLY_TOO_LARGE",
      "done",
    ]);
    expect(small.session.id).toBe(id);
    expect(proxy.accepted).toBe(accepted);
    for (let from = 0; from < 10_000; from += 500) {
      const some = Array.from({ length: 500 }, (_, index) => `${path}/${name(from + index)}`);
      await zk.multi(some.map((one) => ({ type: "delete", path: one })));
    }
  });

  test("a watch storm: waiting events are bounded, one gap replaces the excess, and the last state is found", async () => {
    const zk = await through({ sessionTimeoutMs: 20_000 });
    const writer = await clients.connect({ sessionTimeoutMs: 20_000 }, ensemble.connectString());
    const maxWaiting = 100;
    const watch = await zk.watch(path, { recursive: true, maxWaiting });
    const once = Array.from({ length: 1_000 }, (_, index) => `${path}/once-${index}`);
    let fired = 0;
    await Promise.all(once.map((node) => zk.exists(node, { watch: () => fired++ })));
    const sets = Array.from({ length: 10_000 }, (_, index) => writer.set(path, `${index}`));
    await Promise.all([...sets, ...once.map((node) => writer.create(node, "", { ephemeral: true }))]);
    await writer.set(path, "last");
    await until("all that fire once have fired", () => fired === once.length);
    await zk.sync(path);
    await zk.get(path); // events from before this answer have arrived when it resolves
    const events: NodeEvent[] = [];
    for await (const event of watch) {
      events.push(event);
      if (events.length === 1) await zk.set(path, "after"); // one more event, which ends this loop
      if ((await zk.get(path)).data.toString() === "after" && event.type === "changed" && events.length > 1) break;
    }
    expect(events[0]).toEqual({ type: "gap", path });
    expect(events.length).toBeLessThanOrEqual(maxWaiting + 2);
    await until("the server has forgotten it", async () => !(await ensemble.server.watched()).has(path));
  });

  test("closes under any fault, long before its session ends, and leaves nothing that keeps the process alive", async () => {
    const faults: { name: string; before(proxy: ZooKeeperProxy): unknown; reachable?: boolean }[] = [
      { name: "none", before: () => undefined, reachable: true },
      { name: "hung", before: (one) => one.pause() },
      { name: "gone", before: (one) => one.refuse() },
      { name: "lost just now", before: (one) => one.reset(), reachable: true },
      { name: "slow", before: (one) => one.delay(50), reachable: true },
      {
        name: "lost while it logs in",
        before: (one) => {
          const swallowed = one.swallowReply(op.auth, "silence");
          one.reset();
          return swallowed;
        },
      },
    ];
    const zk = await clients.connect({}, ensemble.connectString());
    await Promise.all(
      faults.map(async ({ name, before, reachable }, index) => {
        const line = `${path}-closing-${index}`;
        await using its = await ZooKeeperProxy.before(ensemble.server.address);
        await using child = new Child("closing.mjs", "CARILLON_TEST_CLOSING", {
          hosts: its.address,
          path: line,
          sessionTimeoutMs: 60_000,
          auth: [{ scheme: "digest", credentials: "ann:secret" }],
        });
        await child.next("ready");
        await before(its);
        child.send({ say: "close" });
        const { reason } = await child.next<{ reason: string }>("closed");
        expect(reason, `${name}: it did not wait until the session was over`).toBe("CLOSED");
        // A client that could reach the server when it was closed has ended its session there, so no node is left.
        const left = [...(await ensemble.server.ephemerals()).values()].flat().filter((node) => node.includes(line));
        if (reachable) expect(left, name).toEqual([]);
        // A client that could not reach the server leaves nodes, which the server would keep for a minute.
        for (const node of left) await zk.delete(node);
        expect(await child.gone, name).toEqual({ code: 0, signal: null });
      }),
    );
  });
});
