/** Tests what only the locks in the store do: the queue of waiters, lock sessions, and lost wake-ups. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { LockStore } from "../../src/cluster/lock-store.ts";
import type { PermitSpec, Permits } from "../../src/cluster/locks.ts";
import type { Signal } from "../../src/cluster/signal-store.ts";
import { StoreLocks } from "../../src/coordination/store/locks.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import { PausableClock } from "../support/pausable-clock.ts";
import { StoreProxy } from "../support/proxy.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";

const never = new AbortController().signal;
const spec = (name: string, permits = 1): PermitSpec => ({ kind: "semaphore", name, permits, fair: true });
const counted = (store: LockStore, asked: Map<string, number>): LockStore =>
  new Proxy(store, {
    get: (target, key: keyof LockStore) => {
      asked.set(key, (asked.get(key) ?? 0) + 1);
      return target[key];
    },
  });

describe.each(everyPostgres())("locks in the store on $title", (server) => {
  let stage: Stage;
  let names = 0;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(() => stage.close());

  const fresh = () => `semaphore-${++names}`;
  const line = async (name: string) =>
    (await stage.rows<{ line: string[] }>("select line from $s.lock where name = $1", [`semaphore:${name}`]))[0]
      ?.line ?? [];
  const sessions = async () => (await stage.one<{ n: number }>("select count(*)::int as n from $s.lock_session")).n;

  /** Opens the locks of one process and counts its statements; with `deaf` the process receives no signals. */
  async function join({ timeoutMs = 6_000, deaf = false } = {}) {
    const proxy = await StoreProxy.before(server.url);
    const store: Store = await openPostgres({
      url: proxy.url,
      schema: stage.schema,
      connectionsMax: 3,
      answerMs: 2_000,
    });
    const asked = new Map<string, number>();
    const signals = deaf ? { listen: async () => undefined } : store.signals;
    const clock = new PausableClock();
    const { log } = recordingLog();
    const place = new StoreLocks({
      store: { locks: counted(store.locks, asked), graceLocks: store.graceLocks, signals },
      clock,
      nowMs: () => Date.now(),
      timeoutMs,
      log,
      era: 0,
    });
    closing.push(async () => {
      proxy.heal();
      await place.close();
      await store.close();
      await proxy.close();
    });
    return {
      place,
      proxy,
      asked,
      clock,
      permits: (name: string, count = 1): Permits => place.permits(spec(name, count)),
    };
  }

  it("cost one statement to take and one to release, and nothing once unused", async () => {
    const name = fresh();
    const a = await join({ timeoutMs: 4_000 });
    const slot = a.permits(name);
    const before = await sessions();
    for (let use = 0; use < 10; use++) await (await slot.acquire(true, never))?.release();
    expect([a.asked.get("open"), a.asked.get("enter"), a.asked.get("leave")]).toEqual([1, 10, 10]);
    await until("its session is over", async () => (await sessions()) === before);
    await until("its name is forgotten", async () => (await line(name)).length === 0 && a.asked.get("forget") === 1);
    const again = await slot.acquire(true, never);
    expect([again?.held, a.asked.get("open")]).toEqual([true, 2]);
  });

  it("find their own entry in the queue if the answer was lost, and remove it", async () => {
    const name = fresh();
    const a = await join({ timeoutMs: 10_000 });
    const other = await a.permits(fresh()).acquire(true, never);
    a.proxy.swallowReply((reply) => /SELECT 1/.test(reply.toString("latin1")));
    const held = await a.permits(name).acquire(true, never);
    expect([a.proxy.swallowed, held?.held, await line(name)]).toEqual([1, true, [expect.any(String)]]);
    a.proxy.swallowReply((reply) => /SELECT 1/.test(reply.toString("latin1")));
    expect(await held?.release()).toBe(false);
    expect([a.proxy.swallowed, await line(name), other?.held]).toEqual([2, [], true]);
  });

  it("remove a queue entry whose release failed, or that was added after the caller gave up", async () => {
    const name = fresh();
    // The next heartbeat of the session deletes the row that the release could not delete. The timeout is longer than a busy machine takes
    // for these steps, because an ended session sends no heartbeats.
    const a = await join({ timeoutMs: 6_000 });
    const held = await a.permits(name).acquire(true, never);
    const kept = await a.permits(fresh()).acquire(true, never);
    a.proxy.cut({ refuse: true });
    expect(await held?.release()).toBe(false);
    a.proxy.heal();
    await until("a beat has found it", async () => (await line(name)).length === 0);
    expect(kept?.held).toBe(true);
    const [session] = await stage.rows<{ id: number }>("select max(id) as id from $s.lock_session");
    // Simulates a request of a caller that has given up, which the store carries out only now.
    a.proxy.cut();
    const end = new AbortController();
    const lost = a.permits(name).acquire(true, end.signal);
    end.abort(new Error("given up"));
    await expect(lost).rejects.toThrow("given up");
    await stage.store.locks.enter({
      name: `semaphore:${name}`,
      token: `${session?.id}.999`,
      permits: 1,
      wait: true,
      era: 0,
      nowMs: 0,
    });
    await until("a beat has found it", async () => (await line(name)).length === 0);
  });

  it("learn from the heartbeat of changes that no signal announced", async () => {
    const name = fresh();
    const [a, b] = [await join(), await join({ deaf: true })];
    const held = await a.permits(name).acquire(true, never);
    const waiting = b.permits(name).acquire(true, never);
    await until("both are in line", async () => (await line(name)).length === 2);
    await held?.release();
    expect((await waiting)?.held).toBe(true);
  });

  it("take over the lock of a long-dead process, even without waiting", async () => {
    const name = fresh();
    const { locks } = stage.store;
    const session = await locks.open(700, Date.now() - 60_000);
    await locks.enter({
      name: `semaphore:${name}`,
      token: `${session}.1`,
      permits: 1,
      wait: true,
      era: 0,
      nowMs: Date.now(),
    });
    const a = await join();
    const held = await a.permits(name).acquire(false, never);
    expect([held?.held, (await line(name)).length]).toEqual([true, 1]);
  });

  it("do not take a live holder for dead because of the store's clock", async () => {
    const name = fresh();
    const [a, b] = [await join({ timeoutMs: 4_000 }), await join({ timeoutMs: 4_000 })];
    const held = await a.permits(name).acquire(true, never);
    await stage.sql.query(`update ${stage.schema}.lock_session set seen_ms = 0`);
    expect(await b.permits(name).acquire(false, never)).toBeUndefined();
    expect(held?.held).toBe(true);
  });

  it("skip waiters that died in the queue", async () => {
    const name = fresh();
    const [a, b, c] = [await join(), await join({ timeoutMs: 2_000 }), await join()];
    const held = await a.permits(name).acquire(true, never);
    const end = new AbortController();
    const dying = b.permits(name).acquire(true, end.signal);
    await until("b is in line", async () => (await line(name)).length === 2);
    const waiting = c.permits(name).acquire(true, never);
    await until("c is in line", async () => (await line(name)).length === 3);
    b.clock.pause();
    b.proxy.hang();
    await until("b's place is gone", async () => (await line(name)).length === 2);
    await held?.release();
    expect((await waiting)?.held).toBe(true);
    end.abort(new Error("enough"));
    await expect(dying).rejects.toThrow("enough");
    b.clock.resume();
  });

  it("are lost if their row is removed from the store", async () => {
    const name = fresh();
    const [a, b] = [await join(), await join()];
    const held = await a.permits(name).acquire(true, never);
    const waiting = b.permits(name).acquire(true, never);
    await until("both are in line", async () => (await line(name)).length === 2);
    await stage.sql.query(`delete from ${stage.schema}.lock where name = $1`, [`semaphore:${name}`]);
    await until("it is told", () => held?.signal.aborted ?? false);
    expect(held?.signal.reason).toMatchObject({ code: "LOCK_NOT_HELD" });
    const next = await waiting;
    expect([next?.held, (next?.fence ?? 0n) > (held?.fence ?? 0n)]).toEqual([true, true]);
  });

  it("receive signals on one connection, however many listeners there are", async () => {
    const proxy = await StoreProxy.before(server.direct);
    const store = await openPostgres({ url: proxy.url, schema: stage.schema, connectionsMax: 1 });
    await store.clock();
    const before = proxy.connections;
    const listeners = [1, 2].map(() => {
      const stop = new AbortController();
      const heard: string[] = [];
      const listener = (signal: Signal) => heard.push(signal.kind === "lock" ? signal.token : signal.kind);
      return { stop, heard, ended: store.signals.listen(listener, stop.signal) };
    });
    const [first, second] = listeners as [(typeof listeners)[0], (typeof listeners)[0]];
    const tell = (token: string) =>
      stage.sql.query("select pg_notify($1, $2)", [`carillon:${stage.schema}`, `lock ${token}`]);
    await until("both listen", () => listeners.every(({ heard }) => heard.includes("resync")));
    await tell("1.1");
    await until("both have heard it", () => listeners.every(({ heard }) => heard.includes("1.1")));
    first.stop.abort();
    await first.ended;
    await tell("1.2");
    await until("the other goes on", () => second.heard.includes("1.2"));
    expect([first.heard.includes("1.2"), proxy.connections - before]).toEqual([false, 1]);
    const late = new AbortController();
    let told = "";
    const lateEnded = store.signals.listen(({ kind }) => {
      told ||= kind;
    }, late.signal);
    expect(told).toBe("resync");
    late.abort();
    await lateEnded;
    second.stop.abort();
    await second.ended;
    await until("its connection is closed", () => proxy.open <= 1);
    await store.close();
    await proxy.close();
  });

  it("limit the length of the queue", async () => {
    const name = fresh();
    const a = await join();
    const held = await a.permits(name).acquire(true, never);
    await stage.sql.query(
      `update ${stage.schema}.lock set line = line || array_fill(line[1], array[9999]), fences = fences || array_fill(fences[1], array[9999])
       where name = $1`,
      [`semaphore:${name}`],
    );
    await expect(a.permits(name).acquire(true, never)).rejects.toMatchObject({ code: "LOCK_BUSY" });
    expect(held?.held).toBe(true);
    await stage.sql.query(`delete from ${stage.schema}.lock where name = $1`, [`semaphore:${name}`]);
  });
});
