import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import { seeded } from "../../src/base/random.ts";
import type { Held, Term } from "../../src/cluster/locks.ts";
import { type JoinOptions, type LockStage, type LockUser, lockDrivers, lockTimeoutMs } from "../support/lock-stage.ts";
import { until } from "../support/store-stage.ts";

const patienceMs = 60_000;
/**
 * Session timeout of waiters that should be woken by a notification: a third of it, the time to their next heartbeat, is longer than any
 * wait of the tests.
 */
const longMs = 240_000;
const tick = () => new Promise((resolve) => setImmediate(resolve));

describe.each(lockDrivers)("locks on $title", (driver) => {
  let stage: LockStage;
  let names = 0;
  beforeAll(async () => {
    stage = await driver.open();
  });
  afterAll(() => stage.close());

  const join = async (test: TestContext, options?: JoinOptions): Promise<LockUser> => {
    const user = await stage.join(options);
    test.onTestFinished(() => user.close());
    return user;
  };
  const fresh = () => `name-${++names}`;
  const soon = (what: string, condition: () => boolean) => until(what, condition, patienceMs);

  it("is held by one holder, and free once it is released", async (t) => {
    const name = fresh();
    const [a, b] = [(await join(t)).locks.lock(name), (await join(t)).locks.lock(name)];
    const held = await a.acquire();
    expect([held.name, held.held, held.signal.aborted, typeof held.fence]).toEqual([name, true, false, "bigint"]);
    expect([await b.tryAcquire(), await a.tryAcquire()]).toEqual([undefined, undefined]);
    expect(await held.release()).toBe(true);
    expect([held.held, held.signal.aborted]).toEqual([false, true]);
    expect(held.signal.reason).toMatchObject({ code: "LOCK_NOT_HELD" });
    const next = await b.acquire();
    expect(next.fence).toBeGreaterThan(held.fence);
    expect([await held.release(), next.held, await a.tryAcquire()]).toEqual([false, true, undefined]);
    await next.release();
    const last = await a.tryAcquire();
    expect(last?.fence).toBeGreaterThan(next.fence);
    await last?.release();
  });

  // These tests run concurrently, because they mostly wait.
  it.concurrent("is held for longer than its timeout by a live holder", async (t) => {
    const name = fresh();
    const [a, b] = [await join(t), await join(t)];
    const held = await a.locks.lock(name).acquire();
    await expect(b.locks.lock(name).acquire({ wait: 1.5 * lockTimeoutMs })).rejects.toMatchObject({
      code: "LOCK_BUSY",
    });
    expect(held.held).toBe(true);
  });

  it.concurrent("passes on when the holder's connection is silent, and the holder detects the loss first", async (t) => {
    const name = fresh();
    const [a, b] = [await join(t), await join(t)];
    const held = await a.locks.lock(name).acquire();
    const ended = new Promise<number>((resolve) => {
      held.signal.addEventListener("abort", () => resolve(performance.now()), { once: true });
    });
    const waiting = b.locks
      .lock(name)
      .acquire({ wait: patienceMs })
      .then((next) => ({ next, atMs: performance.now() }));
    a.hang();
    const [endedMs, { next, atMs }] = await Promise.all([ended, waiting]);
    expect(endedMs).toBeLessThan(atMs);
    expect(held.signal.reason).toMatchObject({ code: "LOCK_NOT_HELD" });
    expect([held.held, next.held, next.fence > held.fence]).toEqual([false, true, true]);
    a.heal();
    expect([await held.release(), next.held]).toEqual([false, true]);
    await next.release();
    const again = await a.locks.lock(name).acquire({ wait: patienceMs });
    expect(again.fence).toBeGreaterThan(next.fence);
  });

  it.concurrent("passes on when the holder is frozen, and the fence refuses the holder's late write", async (t) => {
    const name = fresh();
    const [a, b] = [await join(t), await join(t)];
    const table = { fence: 0n, writer: "" };
    const write = (fence: bigint, writer: string) => {
      if (fence < table.fence) return false;
      Object.assign(table, { fence, writer });
      return true;
    };
    const held = await a.locks.lock(name).acquire();
    expect(write(held.fence, "a")).toBe(true);
    a.pause();
    const next = await b.locks.lock(name).acquire({ wait: patienceMs });
    expect([held.held, write(next.fence, "b"), write(held.fence, "a, late")]).toEqual([false, true, false]);
    a.resume();
    await soon("the late one is told", () => held.signal.aborted);
    expect([table.writer, await held.release(), next.held]).toEqual(["b", false, true]);
  });

  it.concurrent("hands an election over at once", async (t) => {
    const name = fresh();
    const [a, b] = [await join(t, { timeoutMs: longMs }), await join(t, { timeoutMs: longMs })];
    const first = a.locks.elect(name, { onLead: () => undefined });
    await soon("a leads", () => first.term !== undefined);
    const second = b.locks.elect(name, { onLead: () => undefined });
    await stage.inLine(`election:${name}`, 2);
    await first.close();
    await soon("b leads", () => second.term !== undefined);
  });

  it.concurrent("elects one leader at a time, and a candidate can be elected again after a loss", async (t) => {
    const name = fresh();
    const [a, b] = [await join(t), await join(t)];
    const terms: { who: string; term: Term }[] = [];
    let working = 0;
    const onLead = (who: string) => async (term: Term) => {
      expect(terms.filter((one) => one.term.leads)).toEqual([]);
      expect(++working).toBe(1);
      terms.push({ who, term });
      await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
      working--;
    };
    const first = a.locks.elect(name, { onLead: onLead("a") });
    await soon("a leads", () => first.term !== undefined && terms.length === 1);
    const second = b.locks.elect(name, { onLead: onLead("b") });
    await stage.inLine(`election:${name}`, 2);
    await first.close();
    await soon("b leads", () => second.term !== undefined && terms.length === 2);
    expect([first.term, terms[0]?.term.leads]).toEqual([undefined, false]);
    const third = a.locks.elect(name, { onLead: onLead("a") });
    b.hang();
    await soon("a leads again", () => third.term !== undefined && terms.length === 3);
    expect(second.term).toBeUndefined();
    b.heal();
    await stage.inLine(`election:${name}`, 2);
    terms[2]?.term.resign();
    await soon("b leads again", () => second.term !== undefined && terms.length === 4);
    expect(terms.map(({ who }) => who)).toEqual(["a", "b", "a", "b"]);
    const fences = terms.map(({ term }) => term.fence);
    expect(fences).toEqual([...fences].sort((x, y) => (x < y ? -1 : 1)));
    expect(new Set(fences).size).toBe(4);
  });

  it.concurrent("keeps waiting while the service is unreachable, and retries no longer than it has to", async (t) => {
    const name = fresh();
    const [a, b] = [await join(t), await join(t)];
    const held = await b.locks.lock(name).acquire();
    await (await a.locks.lock(`${name}-2`).acquire()).release();
    const waiting = a.locks.lock(name).acquire();
    a.cut();
    await expect(a.locks.lock(name).tryAcquire()).rejects.toMatchObject({
      code: expect.stringMatching(/_UNREACHABLE$/),
    });
    await expect(a.locks.lock(name).acquire({ wait: 50 })).rejects.toMatchObject({ code: "LOCK_BUSY" });
    await held.release();
    a.heal();
    expect((await waiting).held).toBe(true);
  });

  it("is released by the end of its block, also on Node 20", async (t) => {
    const name = fresh();
    const { locks } = await join(t);
    let seen: Held;
    {
      await using held = await locks.lock(name).acquire();
      seen = held;
      expect(held.held).toBe(true);
    }
    expect(seen.held).toBe(false);
    const again = await locks.lock(name).tryAcquire();
    expect(again?.held).toBe(true);
    await again?.[Symbol.asyncDispose]();
  });

  it("keeps kinds apart, and names of every form", async (t) => {
    const { locks } = await join(t);
    const held = await locks.lock("a:b/c@d.e_f-1").acquire();
    const other = await locks.semaphore("a:b/c@d.e_f-1", { permits: 1 }).tryAcquire();
    expect([held.held, other?.held]).toEqual([true, true]);
    await Promise.all([held.release(), other?.release()]);
  });

  it("ends the wait on a signal or a timeout, and leaves nothing behind", async (t) => {
    const name = fresh();
    const [a, b] = [(await join(t)).locks.lock(name), (await join(t)).locks.lock(name)];
    const held = await a.acquire();
    const end = new AbortController();
    const waiting = b.acquire({ signal: end.signal });
    await expect(b.acquire({ wait: 20 })).rejects.toMatchObject({ code: "LOCK_BUSY" });
    end.abort(new Error("no more"));
    await expect(waiting).rejects.toThrow("no more");
    await expect(b.acquire({ signal: end.signal })).rejects.toThrow("no more");
    await expect(b.tryAcquire({ signal: end.signal })).rejects.toThrow("no more");
    await held.release();
    const again = await a.acquire({ wait: patienceMs });
    expect(again.held).toBe(true);
  });

  it.for([1, 3])("admits no more than %d holders under random histories", async (permits, t) => {
    const name = fresh();
    const seed = Math.floor(Math.random() * 2 ** 32);
    const random = seeded(seed);
    const holding = new Set<Held>();
    let lastFence = 0n;
    const all = await Promise.all(Array.from({ length: 4 }, () => join(t)));
    const lockOf = ({ locks }: LockUser) =>
      permits === 1
        ? locks.lock(name, { fair: random.next() < 0.5 })
        : locks.semaphore(name, { permits, fair: random.next() < 0.5 });
    const use = async (user: LockUser) => {
      const lock = lockOf(user);
      const end = new AbortController();
      const asked =
        random.next() < 0.3
          ? lock.tryAcquire({ signal: end.signal })
          : lock.acquire({ signal: end.signal, wait: patienceMs });
      if (random.next() < 0.25) setImmediate(() => end.abort(new Error("given up")));
      const held = await asked.catch((error: Error) => {
        if (error.message !== "given up") throw error;
        return undefined;
      });
      if (!held) return;
      expect([...holding].filter((one) => one.held).length, `seed ${seed}`).toBeLessThan(permits);
      if (permits === 1) expect(held.fence, `seed ${seed}`).toBeGreaterThan(lastFence);
      lastFence = held.fence;
      holding.add(held);
      for (let turns = random.next() * 4; turns > 0; turns--) await tick();
      expect(held.held, `seed ${seed}`).toBe(true);
      holding.delete(held);
      if (random.next() < 0.5) await held.release();
      else void held.release();
    };
    const worker = async (user: LockUser) => {
      for (let round = 0; round < 12; round++) await use(user);
    };
    await Promise.all(all.flatMap((user) => [worker(user), worker(user), worker(user)]));
    expect(lastFence).toBeGreaterThan(0n);
  });

  it("serves waiters in request order if fair, by notification", async (t) => {
    const name = fresh();
    const all = await Promise.all(Array.from({ length: 3 }, () => join(t, { timeoutMs: longMs })));
    const lock = (index: number) => (all[index % 3] as LockUser).locks.lock(name, { fair: true });
    const held = await lock(0).acquire();
    const order: number[] = [];
    const waiting: Promise<unknown>[] = [];
    for (let index = 1; index <= 7; index++) {
      waiting.push(
        lock(index)
          .acquire()
          .then((next) => {
            order.push(index);
            return next.release();
          }),
      );
      await stage.inLine(`lock:${name}`, index + 1);
    }
    await held.release();
    await Promise.all(waiting);
    expect(order).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it("admits exactly one waiter per release", async (t) => {
    const name = fresh();
    const [a, b, c] = [
      await join(t, { timeoutMs: longMs }),
      await join(t, { timeoutMs: longMs }),
      await join(t, { timeoutMs: longMs }),
    ];
    const held = await a.locks.lock(name, { fair: true }).acquire();
    const got: Held[] = [];
    const waiting = [a, b, c].map((user) =>
      user.locks
        .lock(name, { fair: true })
        .acquire()
        .then((next) => got.push(next)),
    );
    await stage.inLine(`lock:${name}`, 4);
    let current = held;
    for (let count = 1; count <= 3; count++) {
      await current.release();
      await soon("another has it", () => got.length === count);
      for (let turns = 0; turns < 20; turns++) await tick();
      expect(got.filter((one) => one.held)).toHaveLength(1);
      current = got[count - 1] as Held;
    }
    await Promise.all(waiting);
  });

  it("refuses a semaphore of another size while it is in use, and accepts it afterwards", async (t) => {
    const name = fresh();
    const [a, b] = [(await join(t)).locks, (await join(t)).locks];
    const two = a.semaphore(name, { permits: 2 });
    const held = [await two.acquire(), await two.acquire()];
    expect(await two.tryAcquire()).toBeUndefined();
    const three = b.semaphore(name, { permits: 3 });
    await expect(three.tryAcquire()).rejects.toMatchObject({ code: "LOCK_SIZE_DIFFERS" });
    await expect(three.acquire()).rejects.toMatchObject({ code: "LOCK_SIZE_DIFFERS" });
    for (const one of held) await one.release();
    const more = [await three.acquire(), await three.acquire(), await three.acquire()];
    expect(new Set([...held, ...more].map(({ fence }) => fence)).size).toBe(5);
    await expect(two.tryAcquire()).rejects.toMatchObject({ code: "LOCK_SIZE_DIFFERS" });
    const waiting = three.acquire();
    await more[1]?.release();
    expect((await waiting).held).toBe(true);
  });

  it("takes leadership away from a candidate whose onLead fails", async (t) => {
    const name = fresh();
    const [a, b] = [await join(t), await join(t)];
    let failed = 0;
    const bad = a.locks.elect(name, {
      onLead: async () => {
        failed++;
        throw new Error("no room");
      },
    });
    await soon("it has failed", () => failed > 0);
    const good = b.locks.elect(name, { onLead: () => undefined });
    await soon("another leads", () => good.term !== undefined);
    expect(bad.term).toBeUndefined();
  });

  it("gives up leading although onLead ignores its signal: on close, on stop, and before the next term", async (t) => {
    const name = fresh();
    const [a, b] = [await join(t, { timeoutMs: longMs, drainMs: 50 }), await join(t, { timeoutMs: longMs })];
    const terms: Term[] = [];
    const onLead = (term: Term) => new Promise<void>(() => void terms.push(term));
    const named = () => a.lines.filter(({ message }) => message.startsWith("onLead did not end in time"));
    const passesOn = async () => {
      const election = b.locks.elect(name, { onLead: () => undefined });
      await soon("another leads", () => election.term !== undefined);
      await election.close();
    };
    const first = a.locks.elect(name, { onLead });
    await soon("a leads", () => terms.length === 1);
    await first.close();
    expect([terms[0]?.leads, terms[0]?.signal.aborted]).toEqual([false, true]);
    expect(named()).toMatchObject([{ level: "warn", fields: { election: name, fence: `${terms[0]?.fence}` } }]);
    await passesOn();
    const second = a.locks.elect(name, { onLead });
    await soon("a leads again", () => terms.length === 2);
    terms[1]?.resign();
    await passesOn();
    expect([named().length, second.term, terms.length]).toEqual([2, undefined, 2]);
    const third = a.locks.elect(`${name}-2`, { onLead });
    await soon("a leads another", () => third.term !== undefined);
    await a.locks.close();
    expect([named().length, third.term]).toEqual([3, undefined]);
  });

  it("ends with the stop: held locks are free, and waiting calls are rejected", async (t) => {
    const name = fresh();
    const [a, b] = [await join(t, { timeoutMs: longMs }), await join(t)];
    const lock = a.locks.lock(name);
    const held = await lock.acquire();
    const slots = [
      await a.locks.semaphore(name, { permits: 2 }).acquire(),
      await a.locks.semaphore(name, { permits: 2 }).acquire(),
    ];
    const election = a.locks.elect(name, { onLead: () => undefined });
    await soon("it leads", () => election.term !== undefined);
    const waiting = lock.acquire();
    const refused = expect(waiting).rejects.toMatchObject({ code: "STOPPED" });
    await a.locks.close();
    await refused;
    expect([held, ...slots].map((one) => one.held)).toEqual([false, false, false]);
    expect(election.term).toBeUndefined();
    const next = await b.locks.lock(name).acquire({ wait: patienceMs });
    const slot = await b.locks.semaphore(name, { permits: 1 }).acquire({ wait: patienceMs });
    const led = await new Promise<Term>((resolve) => {
      b.locks.elect(name, { onLead: resolve });
    });
    expect([next.held, slot.held, led.leads]).toEqual([true, true, true]);
    expect(() => a.locks.lock(name)).toThrowError(expect.objectContaining({ code: "STOPPED" }));
    await expect(lock.acquire()).rejects.toMatchObject({ code: "STOPPED" });
    await expect(lock.tryAcquire()).rejects.toMatchObject({ code: "STOPPED" });
  });

  it("issues higher fences even after all data was lost, to any new holder", async () => {
    const name = fresh();
    let last = 0n;
    for (let round = 0; round < 2; round++) {
      const user = await stage.join();
      const [lock, slots] = [user.locks.lock(name), user.locks.semaphore(name, { permits: 2 })];
      for (let use = 0; use < 2; use++) {
        const [held, slot] = [await lock.acquire(), await slots.acquire()];
        expect(held.fence).toBeGreaterThan(last);
        expect(slot.fence).toBeGreaterThan(0n);
        last = held.fence;
        await Promise.all([held.release(), slot.release()]);
      }
      await user.close();
      if (round === 0) await stage.wipe();
    }
  });

  it("refuses invalid names and options", async (t) => {
    const { locks } = await join(t);
    const invalid = expect.objectContaining({ code: "OPTION_INVALID" });
    for (const bad of ["", " ", "a b", "a{b}", "/a", "ä", "x".repeat(201), undefined as unknown as string]) {
      expect(() => locks.lock(bad)).toThrowError(invalid);
      expect(() => locks.semaphore(bad, { permits: 1 })).toThrowError(invalid);
      expect(() => locks.elect(bad, { onLead: () => undefined })).toThrowError(invalid);
      await expect(locks.graceLock(bad, { owner: "me" })).rejects.toEqual(invalid);
    }
    for (const permits of [0, -1, 1.5, Number.NaN, 1_001, "2" as unknown as number]) {
      expect(() => locks.semaphore("x", { permits })).toThrowError(invalid);
    }
    expect(() => locks.elect("x", {} as never)).toThrowError(invalid);
    const misspelt = (right: string) => ({
      code: "OPTION_INVALID",
      message: expect.stringContaining(`did you mean "${right}"?`),
    });
    const given = (options: object) => options as never;
    expect(() => locks.lock("x", given({ fiar: true }))).toThrowError(expect.objectContaining(misspelt("fair")));
    expect(() => locks.semaphore("x", given({ permit: 2 }))).toThrowError(expect.objectContaining(misspelt("permits")));
    expect(() => locks.elect("x", given({ onlead: 1 }))).toThrowError(expect.objectContaining(misspelt("onLead")));
    await expect(locks.graceLock("x", given({ owner: "me", onTakeover: 1 }))).rejects.toMatchObject(
      misspelt("onTakenOver"),
    );
    await expect(locks.lock("x").acquire(given({ wiat: "1s" }))).rejects.toMatchObject(misspelt("wait"));
    await expect(locks.lock("x").tryAcquire(given({ signl: 1 }))).rejects.toMatchObject(misspelt("signal"));
    await expect(locks.graceLock("x", {})).rejects.toEqual(invalid);
    await expect(locks.lock("x").acquire({ wait: "soon" })).rejects.toMatchObject({ code: "DURATION_INVALID" });
  });
});
