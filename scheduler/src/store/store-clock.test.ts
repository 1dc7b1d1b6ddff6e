import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Clock } from "../base/clock.ts";
import { StoreClock } from "./store-clock.ts";

/** Creates a store clock on a machine with the given wall clock. The store's clock is ahead of the machine's monotonic clock. */
function machine(wallMs = 1_000_000) {
  const state = { monoMs: 50, wallMs };
  const clock: Clock = { monotonic: () => state.monoMs, wall: () => state.wallMs, after: () => () => undefined };
  const storeClock = new StoreClock(clock);
  const sample = (storeAheadMs: number, roundTripMs: number, share = 0.5) => {
    const began = state.monoMs;
    state.monoMs += roundTripMs;
    storeClock.sample(began, began + roundTripMs * share + storeAheadMs, state.monoMs);
  };
  return { state, storeClock, sample };
}

describe("the store's clock", () => {
  it("is the wall clock until the first sample, and then at once the lower bound of the store's clock", () => {
    const { state, storeClock, sample } = machine();
    expect(storeClock.now()).toBe(1_000_000);
    expect(storeClock.errorMs).toBe(Number.POSITIVE_INFINITY);
    sample(5_000_000, 4);
    expect(storeClock.now(), "as if the answer had taken no time").toBe(state.monoMs + 5_000_000 - 2);
    expect(storeClock.errorMs).toBe(4);
    expect(storeClock.until(storeClock.now() + 30)).toBe(30);
    expect(storeClock.until(storeClock.now() - 30)).toBe(0);
  });

  it("does not follow steps of this machine's wall clock", () => {
    const { state, storeClock, sample } = machine();
    sample(5_000_000, 2);
    const before = storeClock.now();
    state.wallMs += 86_400_000;
    state.monoMs += 10;
    expect(storeClock.now()).toBe(before + 10);
    expect(storeClock.wallOffsetMs).toBe(storeClock.now() - state.wallMs);
  });

  it("combines the best bounds of all samples, but relies on a contradicting sample alone", () => {
    const { state, storeClock, sample } = machine();
    sample(5_000_000, 10, 0.9);
    expect(storeClock.now() - state.monoMs).toBeCloseTo(5_000_000 - 1, 5);
    sample(5_000_000, 10, 0.2);
    expect(storeClock.now() - state.monoMs, "a slow answer makes it no worse").toBeCloseTo(5_000_000 - 1, 2);
    expect(storeClock.errorMs, "a quick question: at most 2 ms ahead of the first's 1 ms behind").toBeCloseTo(3, 2);
    sample(5_001_000, 60);
    expect(storeClock.errorMs, "the store's clock was stepped").toBe(60);
    expect(storeClock.now() - state.monoMs).toBe(5_001_000 - 30);
  });

  it("follows a step at once and reports it, jumps forwards at once, and corrects drift slowly, never backwards", () => {
    const { state, storeClock, sample } = machine();
    sample(5_000_000, 2);
    let steps = 0;
    storeClock.onStep(() => {
      steps++;
    });
    sample(4_999_800, 2);
    expect(steps).toBe(0);
    let last = storeClock.now();
    for (let i = 0; i < 100; i++) {
      state.monoMs += 10;
      expect(storeClock.now()).toBeGreaterThan(last);
      last = storeClock.now();
    }
    state.monoMs += 60_000;
    expect(storeClock.now() - state.monoMs).toBe(4_999_799);
    sample(4_000_000, 2);
    expect(steps).toBe(1);
    expect(storeClock.now() - state.monoMs).toBe(3_999_999);
    sample(4_000_100, 2);
    expect(steps, "what waits for a time is late already").toBe(2);
    expect(storeClock.now() - state.monoMs).toBe(4_000_099);
  });

  /** Creates a store clock and gives it readings of the cluster's row, as heartbeats do. */
  function judged() {
    const { state, storeClock } = machine();
    const steps = { followed: 0, held: 0 };
    storeClock.onStep(() => steps.followed++);
    storeClock.onHold(() => steps.held++);
    const read = (aheadMs: number, number = 0, roundTripMs = 2) => {
      const began = state.monoMs;
      state.monoMs += roundTripMs;
      storeClock.sample(began, { ms: began + roundTripMs / 2 + aheadMs, shiftMs: 0, number }, state.monoMs);
    };
    const ahead = () => storeClock.now() - state.monoMs;
    read(5_000_000);
    steps.followed = 0;
    return { state, storeClock, steps, read, ahead };
  }

  it.each([7_200_000, -3_600_000, 510, -510])("holds a step of %d ms until the cluster has judged it", (stepMs) => {
    const { state, storeClock, steps, read, ahead } = judged();
    read(5_000_000 + stepMs);
    expect(steps).toEqual({ followed: 0, held: 1 });
    expect(ahead(), "goes on by the monotonic clock").toBe(4_999_999);
    expect(storeClock.held).toEqual({ stepMs, errorMs: 2, number: 0, sinceMono: state.monoMs });
    read(5_000_000 + stepMs, 0, 40);
    expect(steps.held, "the same step").toBe(1);
    expect(storeClock.held, "a blunt reading makes it no worse").toMatchObject({ stepMs, errorMs: 2 });
    read(5_000_000, 1);
    expect(storeClock.held, "a shift made up for it").toBeUndefined();
    expect([ahead(), steps.followed]).toEqual([4_999_999, 0]);
    read(5_000_000 + stepMs, 2);
    expect(storeClock.held, "it was adopted").toBeUndefined();
    expect(ahead()).toBeCloseTo(4_999_999 + stepMs, 5);
    expect(steps.followed).toBe(1);
  });

  it("forgets a step that is over before it was judged, and treats a later one as another step", () => {
    const { storeClock, steps, read, ahead } = judged();
    read(6_000_000);
    const first = storeClock.held;
    read(8_000_000);
    expect([steps.held, storeClock.held?.stepMs]).toEqual([2, 3_000_000]);
    read(5_000_000);
    expect([storeClock.held, ahead()]).toEqual([undefined, 4_999_999]);
    read(8_000_000);
    storeClock.follow(first as NonNullable<typeof first>);
    expect(ahead(), "that step is none any more").toBe(4_999_999);
    storeClock.follow(storeClock.held as NonNullable<typeof first>);
    expect([storeClock.held, ahead(), steps.followed]).toEqual([undefined, 7_999_999, 1]);
  });

  it("follows a difference below a step at once, and no step that a slow answer explains", () => {
    const { storeClock, read, ahead } = judged();
    read(5_000_400);
    expect([storeClock.held, ahead()]).toEqual([undefined, 5_000_399]);
    read(5_003_000, 0, 6_000);
    expect([storeClock.held, ahead()]).toEqual([undefined, 5_000_399]);
  });

  it("ignores an answer with the previous shift, and judges an answer of a store that lost the latest shift", () => {
    const { state, storeClock, read, ahead } = judged();
    const began = state.monoMs;
    read(5_000_000, 1);
    storeClock.sample(began, { ms: began + 12_200_000, shiftMs: 0, number: 0 }, state.monoMs);
    expect([storeClock.held, ahead()]).toEqual([undefined, 4_999_999]);
    state.monoMs += 10;
    read(12_200_000, 0);
    expect(storeClock.held?.stepMs).toBeCloseTo(7_200_000, 2);
    read(5_000_000, 0);
    expect([storeClock.held, ahead()]).toEqual([undefined, 4_999_999]);
  });

  it("requests a precise sample before a start, and no other until that is imprecise", async () => {
    const { state, storeClock } = machine();
    let asked = 0;
    storeClock.sharpen();
    storeClock.sharpenBy(async () => {
      asked++;
      if (asked === 2) throw new Error("the store is away");
      state.monoMs += 0.25;
      return state.monoMs + 5_000_000;
    });
    for (let ms = 0; ms < 10_000; ms += 100) {
      storeClock.sharpen();
      await Promise.resolve();
      state.monoMs += 100;
    }
    expect(asked).toBe(4);
    expect(storeClock.now() - state.monoMs).toBeCloseTo(5_000_000, 5);
  });

  it("is never ahead of the store's clock, never behind it by more than its error bound, and never runs backwards", () => {
    const samples = fc.array(
      fc.record({
        waitMs: fc.integer({ min: 0, max: 5_000 }),
        roundTripMs: fc.integer({ min: 1, max: 400 }),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
        // The rate at which the store's clock runs faster or slower than this machine's clock.
        drift: fc.double({ min: -0.00009, max: 0.00009, noNaN: true }),
      }),
      { minLength: 1, maxLength: 40 },
    );
    fc.assert(
      fc.property(samples, (given) => {
        const { state, storeClock, sample } = machine();
        let aheadMs = 7_000_000;
        sample(aheadMs, 2);
        let behindMs = 1;
        let last = Number.NEGATIVE_INFINITY;
        for (const { waitMs, roundTripMs, share, drift } of given) {
          const passedMs = waitMs + roundTripMs;
          state.monoMs += waitMs;
          aheadMs += passedMs * drift;
          sample(aheadMs, roundTripMs, share);
          behindMs = Math.min(behindMs + 2 * passedMs * 0.0001, roundTripMs * (1 - share));
          expect(storeClock.now()).toBeGreaterThanOrEqual(last);
          // Waits until all corrections have been applied.
          state.monoMs += 200;
          aheadMs += 200 * drift;
          behindMs += 200 * 0.0002;
          last = storeClock.now();
          const foundMs = last - state.monoMs - aheadMs;
          expect(foundMs).toBeLessThanOrEqual(200 * 0.0001 + 1e-6);
          expect(foundMs).toBeGreaterThanOrEqual(-behindMs - 1e-6);
        }
      }),
    );
  });
});
