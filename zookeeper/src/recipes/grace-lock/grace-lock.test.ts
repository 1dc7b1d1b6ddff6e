import { afterEach, describe, expect, it } from "vitest";
import { ModelClock, type ModelPlace, ModelService, settled } from "../../../test/support/grace-lock-model.ts";
import { GraceLock, type GraceLockOptions } from "./grace-lock.ts";
import type { GraceLockState } from "./states.ts";
import type { TakenOver, Use } from "./use.ts";

const graceMs = 100;
const timeoutMs = 40;

let clock: ModelClock;
let service: ModelService;
const open: { lock: GraceLock; place: { heal(): void } }[] = [];

function contender(owner: string, options: Partial<GraceLockOptions> = {}) {
  clock ??= new ModelClock();
  service ??= new ModelService(clock, timeoutMs);
  const place = service.place();
  const takenOver: TakenOver[] = [];
  const lost: unknown[] = [];
  const states: GraceLockState[] = [];
  const lock = new GraceLock(place, {
    owner,
    graceMs,
    clock,
    onTakenOver: (from) => takenOver.push(from),
    onLost: (why) => lost.push(why),
    onState: (state) => states.push(state),
    ...options,
  });
  open.push({ lock, place });
  return { place, lock, takenOver, lost, states };
}

/** Records how a promise settles, without waiting for it. */
function outcome<T>(promise: Promise<T>): { value?: T; error?: unknown; settled: boolean } {
  const seen: { value?: T; error?: unknown; settled: boolean } = { settled: false };
  promise.then(
    (value) => Object.assign(seen, { value, settled: true }),
    (error) => Object.assign(seen, { error, settled: true }),
  );
  return seen;
}

/** Delays the answers to all writes under the lock. @returns a function that delivers the delayed answers */
function slowAnswers(place: ModelPlace): () => Promise<void> {
  const answers: (() => void)[] = [];
  const answered = (answer: boolean) => new Promise<boolean>((resolve) => answers.push(() => resolve(answer)));
  const take = place.take.bind(place);
  place.take = async (...given) => {
    const holding = await take(...given);
    if (!holding) return undefined;
    const { seenIn, write, release } = holding;
    return {
      seenIn: seenIn.bind(holding),
      fence: holding.fence,
      signal: holding.signal,
      get remainingMs() {
        return holding.remainingMs;
      },
      write: (record) => write.call(holding, record).then(answered),
      release: (record) => release.call(holding, record).then(answered),
    };
  };
  return async () => {
    for (const answer of answers.splice(0)) answer();
    await settled();
  };
}

const mine = async (lock: GraceLock): Promise<Use> => {
  const use = await lock.tryLock();
  if (!use) throw new Error(`${lock.owner} did not get it`);
  return use;
};

afterEach(async () => {
  for (const { lock, place } of open.splice(0)) {
    place.heal();
    await lock.close();
  }
  clock = new ModelClock();
  service = new ModelService(clock, timeoutMs);
});

describe("grace lock", () => {
  it("belongs to one contender over many uses until its release; the next one gets it without a grace", async () => {
    const [a, b] = [contender("a"), contender("b")];
    const first = await mine(a.lock);
    expect([a.lock.state, first.held, first.fence]).toEqual(["OWN", true, 1n]);
    expect(await b.lock.tryLock()).toBeUndefined();
    expect(b.lock.state).toBe("RELEASED");
    expect(await first.note("page 7")).toBe(true);
    expect(await first.end()).toBe(true);
    expect([first.held, first.signal.aborted, a.lock.state]).toEqual([false, false, "OWN"]);
    expect(await b.lock.tryLock()).toBeUndefined();
    const again = await mine(a.lock);
    expect([again.fence, await again.end()]).toEqual([1n, true]);
    expect(await a.lock.release()).toBe(true);
    expect(await a.lock.release()).toBe(false);
    const next = await mine(b.lock);
    expect([next.fence, next.takenOver, b.takenOver]).toEqual([2n, undefined, []]);
    expect([a.lost, a.lock.state]).toEqual([[], "RELEASED"]);
  });

  it("admits one caller of a process at a time", async () => {
    const a = contender("a");
    const [one, two] = await Promise.all([a.lock.tryLock(), a.lock.tryLock()]);
    expect([one !== undefined, two]).toEqual([true, undefined]);
    const waiting = outcome(a.lock.lock());
    await clock.pass(5);
    expect(waiting.settled).toBe(false);
    await one?.end();
    await settled();
    expect(waiting.value?.held).toBe(true);
    expect(service.takes).toHaveLength(1);
  });

  it("a release stops the running use, which stays without an end; the next owner learns that, without a grace", async () => {
    const [a, b] = [contender("a"), contender("b")];
    const use = await mine(a.lock);
    await use.note("half");
    await a.lock.release();
    expect(use.signal.reason).toMatchObject({ code: "NOT_HELD" });
    expect([await use.end(), a.states]).toEqual([false, ["OWN", "CREATED"]]);
    const from = { owner: "a", use: { owner: "a", fence: "1", endedMs: null, note: "half" } };
    const next = await mine(b.lock);
    expect([next.takenOver, b.takenOver]).toMatchObject([from, [from]]);
    await next.end();
    await b.lock.release();
    expect((await mine(a.lock)).takenOver).toBeUndefined();
  });

  it.each([
    ["vanishes", graceMs],
    ["closes in the midst of its use", 0],
  ])("a contender that was refused once is notified when the holder %s, and gets the lock", async (what, waitMs) => {
    const [a, b, c] = [contender("a"), contender("b"), contender("c", { onTakenOver: undefined })];
    const use = await mine(a.lock);
    await use.note("half");
    expect([await b.lock.tryLock(), await c.lock.tryLock()]).toEqual([undefined, undefined]);
    if (waitMs === 0) await a.lock.close();
    else {
      a.place.cut();
      await clock.pass(timeoutMs + waitMs - 1);
      expect(b.takenOver).toEqual([]);
      await clock.pass(2);
    }
    await settled();
    const from = { owner: "a", use: { endedMs: null, note: "half" } };
    expect([what, b.takenOver, b.lock.state, c.lock.state]).toMatchObject([what, [from], "OWN", "RELEASED"]);
    const next = await mine(b.lock);
    expect([next.takenOver, next.fence, service.takes.length]).toMatchObject([from, 2n, 2]);
    expect(await next.end()).toBe(true);
    expect((await mine(b.lock)).takenOver).toBeUndefined();
  });

  it("a contender that is closed while it takes over keeps nothing", async () => {
    const [a, b] = [contender("a"), contender("b")];
    await mine(a.lock);
    expect(await b.lock.tryLock()).toBeUndefined();
    const take = b.place.take.bind(b.place);
    b.place.take = (...given) => {
      void b.lock.close();
      return take(...given);
    };
    await a.lock.close();
    await settled();
    expect([service.takes.length, service.holder, service.record?.released]).toEqual([2, undefined, true]);
  });

  it("a release during the start of a use ends that use before the lock is given up", async () => {
    const a = contender("a");
    const answer = slowAnswers(a.place);
    const attempt = outcome(a.lock.tryLock());
    await settled();
    const released = outcome(a.lock.release());
    await settled();
    await answer();
    expect([attempt.value?.held, attempt.value?.signal.reason]).toMatchObject([false, { code: "NOT_HELD" }]);
    expect(released.settled).toBe(false);
    await answer();
    expect([released.value, a.lock.state]).toEqual([true, "CREATED"]);
  });

  it("tryLock waits for the grace after the holder vanished, and names that holder", async () => {
    const [a, b] = [contender("a"), contender("b")];
    const use = await mine(a.lock);
    await use.note("half");
    a.place.cut();
    await clock.pass(timeoutMs);
    const attempt = outcome(b.lock.tryLock());
    await clock.pass(graceMs - 1);
    expect([attempt.settled, b.lock.state]).toEqual([false, "WAITING"]);
    await clock.pass(2);
    expect(attempt.value?.fence).toBe(2n);
    const from = { owner: "a", use: { owner: "a", fence: "1", endedMs: null, note: "half" } };
    expect(b.takenOver).toMatchObject([from]);
    expect(attempt.value?.takenOver).toMatchObject(from);
    expect(use.signal.reason).toMatchObject({ code: "NOT_HELD" });
    expect(a.lost).toHaveLength(1);
  });

  it("a newcomer waits a full grace from its arrival", async () => {
    const a = contender("a");
    await mine(a.lock);
    a.place.cut();
    await clock.pass(timeoutMs + graceMs / 2);
    const late = contender("late");
    const attempt = outcome(late.lock.tryLock());
    await clock.pass(graceMs - 1);
    expect(attempt.settled).toBe(false);
    await clock.pass(2);
    expect(attempt.value?.held).toBe(true);
  });

  it("a running use reclaims a lost lock at once, under a new fence, and no other contender gets it", async () => {
    const [a, b] = [contender("a"), contender("b")];
    const use = await mine(a.lock);
    const attempt = outcome(b.lock.lock());
    a.place.expire();
    await settled();
    expect([a.lock.state, use.fence, use.held, use.signal.aborted]).toEqual(["OWN", 2n, true, false]);
    expect(a.states).toEqual(["OWN", "WAITING", "OWN"]);
    await clock.pass(3 * graceMs);
    expect(attempt.settled).toBe(false);
    expect(await a.lock.lastUse()).toMatchObject({ owner: "a", fence: "2", endedMs: null });
    expect([a.lost, a.takenOver]).toEqual([[], []]);
  });

  it("a use that was cut off and returns within the grace continues, and never stopped believing", async () => {
    const [a, b] = [contender("a"), contender("b")];
    const use = await mine(a.lock);
    const attempt = outcome(b.lock.tryLock());
    await settled();
    expect(attempt).toMatchObject({ settled: true, value: undefined });
    a.place.cut();
    await clock.pass(timeoutMs + graceMs / 2, () => expect(use.held).toBe(true));
    expect(a.lock.state).toBe("WAITING");
    a.place.heal();
    await settled();
    expect([a.lock.state, use.fence, use.signal.aborted]).toEqual(["OWN", 2n, false]);
    expect(b.lock.state).toBe("RELEASED");
  });

  it("a use whose session ended early, as its connection broke, believes for at most the grace", async () => {
    const [a, b] = [contender("a"), contender("b")];
    const use = await mine(a.lock);
    const attempt = outcome(b.lock.lock());
    await settled();
    expect(use.held).toBe(true);
    a.place.expire();
    a.place.cut();
    await clock.pass(graceMs + 1, () => expect(use.held && attempt.settled).toBe(false));
    expect([use.held, attempt.value?.held]).toEqual([false, true]);
  });

  it("a use that ended while cut off is recorded as ended once the lock is back", async () => {
    const a = contender("a");
    const use = await mine(a.lock);
    a.place.cut();
    await clock.pass(timeoutMs);
    const ending = outcome(use.end());
    await clock.pass(5);
    expect(ending.settled).toBe(false);
    a.place.heal();
    await settled();
    expect(ending.value).toBe(true);
    expect(await a.lock.lastUse()).toMatchObject({ owner: "a", fence: "2", endedMs: clock.wall() });
    expect(a.lock.state).toBe("OWN");
  });

  it("an idle owner steps back: it gets the lock first on request, and others after the grace", async () => {
    const [a, b] = [contender("a"), contender("b")];
    await (await mine(a.lock)).end();
    a.place.expire();
    await settled();
    expect([a.lock.state, service.takes.length]).toEqual(["WAITING", 1]);
    const attempt = outcome(b.lock.tryLock());
    await clock.pass(graceMs / 2);
    await (await mine(a.lock)).end();
    await settled();
    expect(attempt).toMatchObject({ settled: true, value: undefined });
    a.place.expire();
    const again = outcome(b.lock.tryLock());
    await clock.pass(graceMs + 1);
    expect(again.value?.takenOver).toMatchObject({ owner: "a", use: { endedMs: expect.any(Number) } });
    expect(service.takes.map(({ owner }) => owner)).toEqual(["a", "a", "b"]);
  });

  it("an owner's next life gets the lock first, and learns how far the former life came", async () => {
    const [a, b] = [contender("a"), contender("b")];
    await mine(a.lock);
    const attempt = outcome(b.lock.tryLock());
    a.place.cut();
    await clock.pass(timeoutMs);
    const reborn = contender("a");
    const use = await mine(reborn.lock);
    expect(use.takenOver).toMatchObject({ owner: "a", use: { fence: "1", endedMs: null } });
    await settled();
    expect([attempt.settled, use.fence]).toEqual([true, 2n]);
    a.place.heal();
    await settled();
    expect(a.lost).toHaveLength(1);
  });

  it("a restarted owner gets the lock at once, while its former session is alive; the former life is notified", async () => {
    const [a, b] = [contender("a"), contender("b")];
    const use = await mine(a.lock);
    await use.note("half");
    const attempt = outcome(b.lock.lock());
    a.place.cut();
    const reborn = contender("a");
    const next = await mine(reborn.lock);
    const from = { owner: "a", use: { fence: "1", endedMs: null, note: "half" } };
    expect([next.fence, next.takenOver, reborn.takenOver]).toMatchObject([2n, from, [from]]);
    a.place.heal();
    await settled();
    expect([a.lost.length, use.held, next.held]).toEqual([1, false, true]);
    await clock.pass(2 * graceMs);
    expect(attempt.settled).toBe(false);
  });

  it("a second lock object of the same owner in one process takes nothing from the first", async () => {
    const a = contender("a");
    const use = await mine(a.lock);
    const twin = new GraceLock(a.place, { owner: "a", graceMs, clock });
    open.push({ lock: twin, place: a.place });
    expect(await twin.tryLock()).toBeUndefined();
    a.place.expire();
    await settled();
    expect([use.held, use.fence]).toEqual([true, 2n]);
  });

  it("waits for the longer of its own grace and that of the vanished holder", async () => {
    const [a, b] = [contender("a"), contender("b", { graceMs: 10 })];
    await mine(a.lock);
    a.place.expire();
    a.place.cut();
    const attempt = outcome(b.lock.tryLock());
    await clock.pass(graceMs - 1);
    expect(attempt.settled).toBe(false);
    await clock.pass(2);
    expect(attempt.value?.held).toBe(true);
  });

  it("one of two waiters gets the lock at the end of the grace", async () => {
    const [a, b, c] = [contender("a"), contender("b"), contender("c")];
    await mine(a.lock);
    a.place.cut();
    await clock.pass(timeoutMs);
    const attempts = [outcome(b.lock.tryLock()), outcome(c.lock.tryLock())];
    await clock.pass(graceMs + 1);
    expect(attempts.every(({ settled }) => settled)).toBe(true);
    expect(attempts.filter(({ value }) => value)).toHaveLength(1);
  });

  it("stops a use that was overtaken, even if the overtaking owner vanished too", async () => {
    // Within the grace only a process with the same owner name can take the lock. Two processes with one name violate the rules.
    const [one, two] = [contender("a"), contender("a")];
    const use = await mine(one.lock);
    one.place.cut();
    await clock.pass(timeoutMs);
    await mine(two.lock);
    two.place.expire();
    two.place.cut();
    await settled();
    one.place.heal();
    await settled();
    expect(use.signal.reason).toMatchObject({ code: "NOT_HELD" });
    expect(one.lost).toHaveLength(1);
  });

  it("an aborted attempt does not get the lock later", async () => {
    const [a, b] = [contender("a"), contender("b")];
    await mine(a.lock);
    a.place.cut();
    await clock.pass(timeoutMs);
    const stop = new AbortController();
    const attempt = outcome(b.lock.lock({ signal: stop.signal }));
    await clock.pass(graceMs / 2);
    stop.abort();
    await settled();
    expect(attempt.error).toMatchObject({ code: "ABORTED" });
    await clock.pass(2 * graceMs);
    expect(service.takes).toHaveLength(1);
  });

  it.each(["taken for it", "held already"])(
    "an attempt aborted while its use is written leaves no use: %s",
    async (how) => {
      const [a, b] = [contender("a"), contender("b")];
      const answer = slowAnswers(a.place);
      if (how === "held already") {
        const first = outcome(a.lock.tryLock());
        for (let ends = 0; ends < 2; ends++) {
          await settled();
          await answer();
          void first.value?.end();
        }
      }
      const lastUse = await a.lock.lastUse();
      const stop = new AbortController();
      const attempt = outcome(a.lock.tryLock({ signal: stop.signal }));
      await settled();
      stop.abort();
      await settled();
      expect(attempt.error).toMatchObject({ code: "ABORTED" });
      const next = outcome(a.lock.tryLock());
      for (const _ of ["the use", "its release", "the next use"]) await answer();
      expect(next.value?.held).toBe(true);
      expect(service.takes.at(-1)?.previous).toMatchObject({ released: true, use: lastUse ?? null });
      const released = outcome(a.lock.release());
      await settled();
      await answer();
      expect(released.value).toBe(true);
      expect((await mine(b.lock)).held).toBe(true);
    },
  );

  it("close releases the lock, and ends waiting attempts", async () => {
    const [a, b] = [contender("a"), contender("b")];
    await mine(a.lock);
    const attempt = outcome(b.lock.lock());
    await settled();
    await b.lock.close();
    await settled();
    expect(attempt.error).toMatchObject({ code: "CLOSED" });
    await a.lock.close();
    expect(service.record?.released).toBe(true);
    await expect(a.lock.tryLock()).rejects.toMatchObject({ code: "CLOSED" });
  });

  it("refuses invalid options", () => {
    const place = new ModelService(new ModelClock(), timeoutMs).place();
    const code = (options: GraceLockOptions) => {
      try {
        new GraceLock(place, options);
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    expect(code({ owner: "" })).toBe("OPTION_INVALID");
    expect(code({ owner: "a", graceMs: Number.NaN })).toBe("OPTION_INVALID");
    expect(code({ owner: "a", graceMs: -1 })).toBe("OPTION_INVALID");
  });
});
