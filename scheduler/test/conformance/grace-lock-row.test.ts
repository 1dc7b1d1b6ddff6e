/** Tests what only PostgreSQL's grace lock does. grace-lock.test.ts tests both drivers. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { GraceLock } from "../../../zookeeper/src/recipes/grace-lock/grace-lock.ts";
import type { LockRecord } from "../../../zookeeper/src/recipes/grace-lock/place.ts";
import { CarillonError } from "../../src/base/errors.ts";
import type { GraceLockStore } from "../../src/cluster/grace-lock-store.ts";
import { GraceLockRow, type GraceLockRowOptions } from "../../src/coordination/grace-lock.ts";
import { postgres } from "../support/servers.ts";
import { openStage, type Stage, until } from "../support/store-stage.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const times = { timeoutMs: 1_000, beatMs: 100, pollMs: 25 };
/** For locks that must stay held: no load delays a heartbeat for as long as this timeout. */
const longTimes = { ...times, timeoutMs: 60_000 };
const by = (holder: string, replaced: string | null = null) => ({ holder, replaced });
const record: LockRecord = { owner: "a", life: "1", graceMs: 0, released: false, use: null };

describe("the row of a grace lock", () => {
  let stage: Stage;
  let name: string;
  let names = 0;
  const closing: (() => Promise<void> | void)[] = [];
  beforeAll(async () => {
    stage = await openStage(postgres());
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  afterAll(() => stage.close());

  const fresh = () => {
    name = `row-${++names}`;
  };
  const contend = (
    owner: string,
    graceMs = 60_000,
    store: GraceLockStore = stage.store.graceLocks,
    options: GraceLockRowOptions = times,
  ): GraceLock => {
    const lock = new GraceLock(new GraceLockRow<LockRecord>(store, name, options), { owner, graceMs });
    closing.push(() => lock.close());
    return lock;
  };
  const place = (options: GraceLockRowOptions = times, store: GraceLockStore = stage.store.graceLocks) =>
    new GraceLockRow<LockRecord>(store, name, options);

  it("the holder keeps the lock although its connections are killed repeatedly", async () => {
    fresh();
    const store = await stage.another({ connectionsMax: 2 });
    const [a, b] = [contend("a", 60_000, store.graceLocks, longTimes), contend("b")];
    const use = await a.lock();
    for (let times = 0; times < 5; times++) {
      await stage.sql.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like '%grace_lock%' and pid <> pg_backend_pid()",
      );
      expect(await use.note(`after ${times}`)).toBe(true);
      expect(await b.tryLock()).toBeUndefined();
    }
    expect([use.held, use.fence, a.fence]).toEqual([true, 1n, 1n]);
    expect(await b.lastUse()).toMatchObject({ note: "after 4" });
  });

  it("is released in order even if the answer is lost and a heartbeat finds the row empty first", async () => {
    fresh();
    const { graceLocks } = stage.store;
    const clock = new VirtualClock(0);
    let isLost = false;
    let beats = 0;
    const store: GraceLockStore = {
      ...graceLocks,
      async write(...given) {
        const written = await graceLocks.write(...given);
        const [, , , release] = given;
        if (!release || isLost) return written;
        isLost = true;
        throw new CarillonError("STORE_UNREACHABLE", "the answer is lost");
      },
      beat: (...given) => graceLocks.beat(...given).finally(() => beats++),
    };
    const states: string[] = [];
    const row = new GraceLockRow<LockRecord>(store, name, { ...longTimes, clock });
    const lock = new GraceLock(row, { owner: "a", clock, onState: (state) => void states.push(state) });
    closing.push(() => lock.close());
    await (await lock.lock()).end();
    clock.advance(longTimes.beatMs - 1);
    const released = lock.release();
    await until("the answer is lost", () => isLost);
    clock.advance(1);
    await until("a beat finds the row empty", () => beats > 0);
    clock.advance(longTimes.beatMs);
    expect([await released, states]).toEqual([true, ["OWN", "CREATED"]]);
  });

  it("is guarded by the table: takes on an old version, and writes and heartbeats of an old holder, change nothing", async () => {
    fresh();
    const { graceLocks } = stage.store;
    const [one, two, three] = ["1", "2", "3"].map((digit) => `00000000-0000-4000-8000-00000000000${digit}`) as [
      string,
      string,
      string,
    ];
    expect(await graceLocks.read(name)).toBeNull();
    expect(await graceLocks.take(name, 0, by(one), 1_000, record)).toBeNull();
    expect(await graceLocks.take(name, null, by(one), 1_000, record)).toEqual({ fence: 1 });
    expect(await graceLocks.take(name, null, by(two), 1_000, record)).toBeNull();
    const row = await graceLocks.read(name);
    expect(await graceLocks.take(name, row?.version ?? -1, by(two), 1_000, record)).toBeNull();
    expect([await graceLocks.beat(name, one), await graceLocks.beat(name, two)]).toEqual([true, false]);
    expect(await graceLocks.vacate(name, one, row?.beat ?? -1)).toBe(false); // the holder has sent a heartbeat since `row` was read
    expect(await graceLocks.vacate(name, one, (row?.beat ?? -1) + 1)).toBe(true);
    expect(await graceLocks.beat(name, one)).toBe(false);
    expect(await graceLocks.write(name, one, record, true)).toBe(false);
    expect(await graceLocks.take(name, row?.version ?? -1, by(two), 1_000, record)).toBeNull();
    const vacant = await graceLocks.read(name);
    expect(vacant).toMatchObject({ holder: null, fence: 1, record });
    expect(await graceLocks.take(name, vacant?.version ?? -1, by(two), 1_000, record)).toEqual({ fence: 2 });
    const held = await graceLocks.read(name);
    expect(await graceLocks.take(name, held?.version ?? -1, by(three, one), 1_000, record)).toBeNull();
    expect(await graceLocks.take(name, held?.version ?? -1, by(three, two), 1_000, record)).toEqual({ fence: 3 });
    expect([await graceLocks.beat(name, two), await graceLocks.write(name, two, record, true)]).toEqual([false, false]);
    expect(await graceLocks.write(name, three, record, true)).toBe(true);
    const released = await graceLocks.read(name);
    expect(await graceLocks.take(name, released?.version ?? -1, by(one), 1_000, record)).toEqual({ fence: 4 });
  });

  it("a contender judges silence by its own clock, and ignores the time without a connection to the store", async () => {
    fresh();
    const holder = "00000000-0000-4000-8000-000000000009";
    await stage.store.graceLocks.take(name, null, by(holder), 1_000, record);
    const clock = new VirtualClock(0);
    let away = false;
    const store: GraceLockStore = {
      ...stage.store.graceLocks,
      read: (lock) => {
        if (away) return Promise.reject(new CarillonError("STORE_UNREACHABLE", "away"));
        return stage.store.graceLocks.read(lock);
      },
    };
    const observer = place({ ...times, clock }, store);
    expect((await observer.look()).held).toBe(true);
    clock.advance(999);
    expect((await observer.look()).held).toBe(true);

    away = true;
    const looking = observer.look();
    await new Promise((resolve) => setImmediate(resolve));
    away = false;
    const moving = setInterval(() => clock.advance(25), 1);
    expect((await looking).held).toBe(true);
    clearInterval(moving);
    clock.advance(999);
    expect((await observer.look()).held).toBe(true);
    await stage.store.graceLocks.beat(name, holder);
    clock.advance(500);
    expect((await observer.look()).held).toBe(true);
    clock.advance(999);
    expect((await observer.look()).held).toBe(true);
    clock.advance(1);
    const seen = await observer.look();
    expect([seen.held, seen.record]).toEqual([false, record]);
  });

  it("if the store is away longer than the timeout, the use stops in time, and regains the lock afterwards", async () => {
    fresh();
    let away = false;
    const gate = <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) => {
      return async (...args: Args): Promise<Result> => {
        if (away) throw new CarillonError("STORE_UNREACHABLE", "away");
        return call(...args);
      };
    };
    const { read, take, beat, write, vacate } = stage.store.graceLocks;
    const store = { read: gate(read), take: gate(take), beat: gate(beat), write: gate(write), vacate: gate(vacate) };
    const [a, b] = [contend("a", 60_000, store), contend("b", 60_000, store)];
    const use = await a.lock();
    expect(await b.tryLock()).toBeUndefined();
    away = true;
    await until("its holding is over", () => a.state === "WAITING");
    expect([use.held, use.signal.aborted, a.fence]).toEqual([true, false, undefined]);
    away = false;
    await until("it has it back", () => a.fence !== undefined);
    expect([use.fence, a.fence, a.state]).toEqual([2n, 2n, "OWN"]);
  });

  it("a take whose answer was lost is given back, so that no contender waits for it", async () => {
    fresh();
    let lose = true;
    const store: GraceLockStore = {
      ...stage.store.graceLocks,
      async take(...args) {
        const taken = await stage.store.graceLocks.take(...args);
        if (!lose) return taken;
        lose = false;
        throw new CarillonError("STORE_UNREACHABLE", "the answer was lost");
      },
    };
    const use = await contend("a", 60_000, store).tryLock();
    expect([use?.held, use?.fence, use?.takenOver]).toEqual([true, 2n, undefined]);
  });

  it("refuses inconsistent times", () => {
    fresh();
    const code = (options: GraceLockRowOptions) => {
      try {
        place(options);
      } catch (error) {
        return (error as CarillonError).code;
      }
    };
    expect(code({ timeoutMs: 0 })).toBe("OPTION_INVALID");
    expect(code({ beatMs: Number.NaN })).toBe("OPTION_INVALID");
    expect(code({ timeoutMs: 1_000, beatMs: 600 })).toBe("OPTION_INVALID");
    expect(code({})).toBeUndefined();
  });
});
