import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { isZooKeeperError } from "../../../zookeeper/src/base/errors.ts";
import type { Use } from "../../../zookeeper/src/recipes/grace-lock/use.ts";
import {
  type Contender,
  type ContenderOptions,
  type DriverStage,
  drivers,
  graceMs,
  mustLock,
} from "../support/grace-lock-stage.ts";
import { until } from "../support/store-stage.ts";

/** The longest wait in ms for an event that must happen eventually, even on a busy machine. */
const patienceMs = 60_000;
/** Options for contenders whose session must not end: the session timeout is longer than a busy machine delays a process. */
const steady = { sessionMs: 8_000 };
/** Timers may fire up to this many ms early when compared with another clock. */
const roundingMs = 5;

describe.each(drivers)("grace lock in $title", (driver) => {
  let stage: DriverStage;
  const open: Contender[] = [];
  let locks = 0;
  let name: string;
  beforeAll(async () => {
    stage = await driver.open();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((contender) => contender.close()));
  });
  afterAll(() => stage.close());

  const fresh = () => {
    name = `lock-${++locks}`;
  };
  const join = async (owner: string, options?: ContenderOptions): Promise<Contender> => {
    const contender = await stage.contender(name, owner, options);
    open.push(contender);
    return contender;
  };
  const happenedTo = (contender: Contender, what: string) => contender.happened.filter((one) => one.what === what);
  const soon = (what: string, condition: () => boolean) => until(what, condition, patienceMs);

  it("is held by one owner over many uses, and is free at once after a clean release", async () => {
    fresh();
    const [a, b] = [await join("a", { ...steady, graceMs: 60_000 }), await join("b", { ...steady, graceMs: 60_000 })];
    const use = await mustLock(a);
    expect([use.held, use.takenOver, a.lock.state, a.lock.fence]).toEqual([true, undefined, "OWN", use.fence]);
    expect(await b.lock.tryLock()).toBeUndefined();
    expect(b.lock.state).toBe("RELEASED");
    await use.note("two thirds");
    expect(await use.end()).toBe(true);
    const again = await mustLock(a);
    expect(again.fence).toBe(use.fence);
    await again.end();
    expect(await b.lock.lastUse()).toMatchObject({ owner: "a", fence: String(use.fence), endedMs: expect.any(Number) });
    expect(await b.lock.release()).toBe(false);
    expect(await b.lock.tryLock()).toBeUndefined();
    const waiting = b.lock.lock();
    expect(await a.lock.release()).toBe(true);
    const states = happenedTo(a, "state").map(({ detail }) => detail);
    expect(states.slice(0, 2)).toEqual(["OWN", "CREATED"]);
    const next = await waiting;
    expect(next.fence).toBeGreaterThan(use.fence);
    expect([next.takenOver, b.happened.filter(({ what }) => what !== "state")]).toEqual([undefined, []]);
    expect(await a.lock.release()).toBe(false);
    expect(next.held).toBe(true);
  });

  it("holder cut off for good: contenders wait the grace, and its use ends before another owner holds the lock", async () => {
    fresh();
    const [a, b] = [await join("a"), await join("b", steady)];
    const use = await mustLock(a);
    await use.note("half");
    expect(await b.lock.tryLock()).toBeUndefined();
    a.hang();
    const next = await b.lock.lock();
    const atMs = performance.now();
    const vacant = b.happened.findLast(({ what, detail }) => what === "state" && detail === "WAITING");
    expect(atMs - (vacant?.atMs ?? atMs)).toBeGreaterThanOrEqual(graceMs - roundingMs);
    expect(use.held).toBe(false);
    const [lost] = happenedTo(a, "lost");
    expect(lost?.detail).toMatchObject({ code: "NOT_HELD" });
    expect(use.signal.reason).toBe(lost?.detail);
    const [own] = b.happened.filter(({ what, detail }) => what === "state" && detail === "OWN");
    expect(lost?.atMs).toBeLessThanOrEqual(own?.atMs ?? 0);
    expect(next.takenOver).toMatchObject({
      owner: "a",
      use: { fence: String(use.fence), endedMs: null, note: "half" },
    });
    expect(happenedTo(b, "took over")).toHaveLength(1);
    expect(next.fence).toBeGreaterThan(use.fence);

    a.heal();
    await soon("a sees that b has it", () => a.lock.state === "RELEASED");
    expect([await use.end(), await use.note("late"), await a.lock.release()]).toEqual([false, false, false]);
    expect(next.held).toBe(true);
    expect(await b.lock.lastUse()).toMatchObject({ owner: "b", note: null });
  });

  it("a contender that was refused once is notified at the end of the grace, and gets the lock", async () => {
    fresh();
    const [a, b] = [await join("a"), await join("b", steady)];
    const use = await mustLock(a);
    await use.note("half");
    expect(await b.lock.tryLock()).toBeUndefined();
    a.hang();
    await soon("b is told", () => happenedTo(b, "took over").length > 0);
    const at = (state: string) => b.happened.findLast(({ detail }) => detail === state)?.atMs ?? 0;
    expect(at("OWN") - at("WAITING")).toBeGreaterThanOrEqual(graceMs - roundingMs);
    const next = await mustLock(b);
    expect(next.takenOver).toMatchObject({
      owner: "a",
      use: { fence: String(use.fence), endedMs: null, note: "half" },
    });
    expect(use.held).toBe(false);
  });

  it("holder closed during a use: no contender waits, the next one is informed, and the lock is free", async () => {
    fresh();
    const long = { graceMs: 60_000, sessionMs: 20_000 };
    const [a, b] = [await join("a", long), await join("b", long)];
    const use = await mustLock(a);
    await use.note("half");
    expect(await b.lock.tryLock()).toBeUndefined();
    await a.lock.close();
    expect(happenedTo(a, "state").map(({ detail }) => detail)).toEqual(["OWN", "CREATED"]);
    expect(use.signal.reason).toMatchObject({ code: "NOT_HELD" });
    await soon("b is told", () => happenedTo(b, "took over").length > 0);
    expect((await mustLock(b)).takenOver).toMatchObject({ owner: "a", use: { endedMs: null, note: "half" } });
  });

  it("holder disconnected and back within its session: no effect", async () => {
    fresh();
    const lasting = { sessionMs: 20_000 };
    const [a, b] = [await join("a", lasting), await join("b", lasting)];
    const use = await mustLock(a);
    expect(await b.lock.tryLock()).toBeUndefined();
    for (let times = 0; times < 3; times++) {
      a.break();
      expect(use.held).toBe(true);
      await use.note(`after break ${times}`);
    }
    expect([use.fence, use.held, a.lock.state, b.lock.state]).toEqual([a.lock.fence, true, "OWN", "RELEASED"]);
    expect(happenedTo(a, "state").map(({ detail }) => detail)).toEqual(["OWN"]);
    expect(await b.lock.lastUse()).toMatchObject({ note: "after break 2" });
  });

  it("holder back after its session but within the grace: the running use continues with a new fence", async () => {
    fresh();
    const long = { graceMs: 60_000 };
    const [a, b] = [await join("a", long), await join("b", { ...steady, ...long })];
    const use = await mustLock(a);
    const first = use.fence;
    const waiting = b.lock.tryLock();
    expect(await waiting).toBeUndefined();
    a.hang();
    await soon("b sees the vacancy", () => b.lock.state === "WAITING");
    const attempt = b.lock.tryLock();
    expect(use.held).toBe(true);
    a.heal();
    expect(await attempt).toBeUndefined();
    await soon("a has it back", () => a.lock.state === "OWN");
    expect(use.fence).toBeGreaterThan(first);
    expect([use.held, use.signal.aborted, use.fence]).toEqual([true, false, a.lock.fence]);
    expect([...happenedTo(a, "lost"), ...happenedTo(a, "took over")]).toEqual([]);
    expect(await use.end()).toBe(true);
    expect(await b.lock.lastUse()).toMatchObject({ owner: "a", endedMs: expect.any(Number) });
  });

  it("holder's session ended during a use: the lock is taken back at once", async () => {
    fresh();
    const long = { ...steady, graceMs: 60_000 };
    const [a, b] = [await join("a", long), await join("b", long)];
    const use = await mustLock(a);
    const first = use.fence;
    const waiting = b.lock.lock();
    await a.expire();
    await soon("a has it back", () => use.fence > first);
    expect([use.held, use.signal.aborted]).toEqual([true, false]);
    await use.end();
    await a.lock.release();
    expect((await waiting).fence).toBeGreaterThan(use.fence);
  });

  it("idle holder's session ended: it steps back, and another owner holds the lock after the grace", async () => {
    fresh();
    const [a, b] = [await join("a", steady), await join("b", steady)];
    await (await mustLock(a)).end();
    expect(await b.lock.tryLock()).toBeUndefined();
    await a.expire();
    const next = await b.lock.lock();
    expect(next.takenOver).toMatchObject({ owner: "a", use: { endedMs: expect.any(Number) } });
    const at = (state: string) => b.happened.findLast(({ detail }) => detail === state)?.atMs ?? 0;
    expect(at("OWN") - at("WAITING")).toBeGreaterThanOrEqual(graceMs - roundingMs);
    await soon("a knows", () => a.lock.state === "RELEASED");
    expect(happenedTo(a, "lost")).toEqual([]);
  });

  it("an idle owner that requests the lock within the grace gets it first", async () => {
    fresh();
    const long = { ...steady, graceMs: 60_000 };
    const [a, b] = [await join("a", long), await join("b", long)];
    const first = await mustLock(a);
    await first.end();
    expect(await b.lock.tryLock()).toBeUndefined();
    await a.expire();
    await soon("b sees the vacancy", () => b.lock.state === "WAITING");
    const attempt = b.lock.tryLock();
    const use = await mustLock(a);
    expect(use.fence).toBeGreaterThan(first.fence);
    expect(await attempt).toBeUndefined();
  });

  it("a restarted owner gets it first and is informed; a newcomer waits a whole grace, and is overtaken", async () => {
    fresh();
    const long = { ...steady, graceMs: 60_000 };
    // The session is long enough that the newcomer's first attempt comes before the session ends.
    const a = await join("a", { ...long, sessionMs: 4_000 });
    const use = await mustLock(a);
    a.hang();
    const newcomer = await join("b", long);
    expect(await newcomer.lock.tryLock()).toBeUndefined(); // the holder's session has not ended yet
    await soon("the newcomer sees the vacancy", () => newcomer.lock.state === "WAITING");
    const attempt = newcomer.lock.tryLock();
    const reborn = await join("a", long);
    const next = await mustLock(reborn);
    expect(next.takenOver).toMatchObject({ owner: "a", use: { fence: String(use.fence), endedMs: null } });
    expect(next.fence).toBeGreaterThan(use.fence);
    expect(await attempt).toBeUndefined();
    expect(newcomer.lock.state).toBe("RELEASED");
    a.heal();
    await soon("the former life is told", () => use.signal.aborted);
  });

  it("a restarted owner gets it at once, while the session of its former process still counts", async () => {
    fresh();
    const lasting = { sessionMs: 20_000, graceMs: 60_000 };
    const [a, b] = [await join("a", lasting), await join("b", lasting)];
    const use = await mustLock(a);
    expect(await b.lock.tryLock()).toBeUndefined();
    a.hang();
    const reborn = await join("a", lasting);
    const next = await mustLock(reborn);
    expect(next.takenOver).toMatchObject({ owner: "a", use: { fence: String(use.fence), endedMs: null } });
    expect(next.fence).toBeGreaterThan(use.fence);
    expect(await b.lock.tryLock()).toBeUndefined();
    a.heal();
    await soon("the former life is told", () => use.signal.aborted);
    expect([await use.end(), await next.end(), happenedTo(a, "lost").length]).toEqual([false, true, 1]);
  });

  it("of several waiting contenders, one gets the lock at the end of the grace", async () => {
    fresh();
    const a = await join("a");
    await mustLock(a);
    const others = await Promise.all(["b", "c", "d"].map((owner) => join(owner, steady)));
    for (const { lock } of others) expect(await lock.tryLock()).toBeUndefined();
    a.hang();
    await soon("the vacancy is seen", () => others.every(({ lock }) => lock.state === "WAITING"));
    const uses = await Promise.all(others.map(({ lock }) => lock.tryLock()));
    expect(uses.filter((use) => use?.held)).toHaveLength(1);
    expect(others.filter(({ lock }) => lock.state === "RELEASED")).toHaveLength(2);
  });

  it("a lost answer to a take or a release is recovered, and no two owners hold the lock", async () => {
    fresh();
    const [a, b] = [await join("a", steady), await join("b", steady)];
    expect(await b.lock.tryLock().then((use) => use?.end())).toBe(true);
    for (let times = 0; times < 3; times++) {
      await b.lock.release();
      a.swallow();
      const use = await a.lock.lock();
      expect(await b.lock.tryLock()).toBeUndefined();
      await use.end();
      a.swallow();
      await a.lock.release();
      expect(a.swallowed).toBe(2 * times + 2);
      const next = await b.lock.lock();
      expect(next.fence).toBeGreaterThan(use.fence);
      await next.end();
    }
    const states = happenedTo(a, "state").map(({ detail }) => detail);
    const released = states.flatMap((state, at) => (state === "OWN" ? [states[at + 1]] : []));
    expect(released).toEqual(["CREATED", "CREATED", "CREATED"]);
  });

  it("random histories: at most one owner at a time, and fences only rise", async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    await history(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error });
    });
  });

  /**
   * Plays a random history of connection faults. Checks that no two contenders believe at the same time that they hold the lock,
   * and that fences rise.
   */
  async function history(seed: number): Promise<void> {
    fresh();
    let state = seed;
    const below = (n: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return Math.floor((state / 0x80000000) * n);
    };
    const all = await Promise.all(["a", "b", "c"].map((owner) => join(owner, { graceMs: 400, sessionMs: 1_000 })));
    const uses: { owner: Contender; use: Use }[] = [];
    const believed: { owner: Contender; fence: bigint }[] = [];
    const failures: unknown[] = [];
    const look = () => {
      const believing = uses.filter(({ use }) => use.held);
      if (believing.length > 1) failures.push(`${believing.map(({ owner }) => owner.lock.owner)} believe at once`);
      for (const { owner, use } of believing) {
        const last = believed.at(-1);
        if (last?.fence !== use.fence) believed.push({ owner, fence: use.fence });
      }
    };
    const ask = (owner: Contender) => {
      owner.lock.tryLock().then(
        (use) => use && uses.push({ owner, use }),
        (error: unknown) => isZooKeeperError(error, "CLOSED") || failures.push(error),
      );
    };
    const watching = setInterval(look, 3);
    try {
      for (let step = 0; step < 40; step++) {
        const contender = all[below(3)] as Contender;
        const own = uses.findLast(({ owner, use }) => owner === contender && use.held)?.use;
        const dice = below(8);
        if (dice < 3) ask(contender);
        else if (dice === 3) own?.end().catch((error: unknown) => failures.push(error));
        else if (dice === 4) contender.hang();
        else if (dice === 5) contender.heal();
        else if (dice === 6) contender.break();
        else own?.note(`step ${step}`).catch((error: unknown) => failures.push(error));
        await new Promise((resolve) => setTimeout(resolve, below(200)));
      }
      for (const contender of all) contender.heal();
      await soon("one of them has it, now that the faults are over", () => {
        for (const contender of all) ask(contender);
        return uses.some(({ use }) => use.held);
      });
    } finally {
      clearInterval(watching);
    }
    look();
    expect(failures).toEqual([]);
    for (const [at, { fence }] of believed.entries()) {
      expect(fence).toBeGreaterThan(believed[at - 1]?.fence ?? 0n);
    }
  }
});
