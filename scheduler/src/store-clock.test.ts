import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Clock } from "./clock.ts";
import { StoreClock } from "./store-clock.ts";

/** A machine whose monotonic clock is `monoMs`; the store is `aheadMs` ahead of it. */
function machine(wallMs = 1_000_000) {
  const state = { monoMs: 50, wallMs };
  const clock: Clock = { monotonic: () => state.monoMs, wall: () => state.wallMs, after: () => () => undefined };
  const storeClock = new StoreClock(clock);
  const sample = (storeAheadMs: number, roundTripMs: number, share = 0.5) => {
    const began = state.monoMs;
    state.monoMs += roundTripMs;
    storeClock.sample(began, began + roundTripMs * share + storeAheadMs, state.monoMs);
  };
  /** The samples of a start: as long as they last, each is followed at once. */
  const settle = (storeAheadMs: number) => {
    for (let i = 0; i < 6; i++) sample(storeAheadMs, 2);
  };
  return { state, storeClock, sample, settle };
}

describe("the store's clock", () => {
  it("is the wall clock until the first sample, then the store's at once", () => {
    const { state, storeClock, sample } = machine();
    expect(storeClock.now()).toBe(1_000_000);
    expect(storeClock.errorMs).toBe(Number.POSITIVE_INFINITY);
    sample(5_000_000, 4);
    expect(storeClock.now()).toBe(state.monoMs + 5_000_000);
    expect(storeClock.errorMs).toBe(2);
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

  it("believes a sharper sample, and a blunt one only when it contradicts", () => {
    const { storeClock, sample } = machine();
    sample(5_000_000, 10);
    expect(storeClock.errorMs).toBe(5);
    sample(5_000_001, 2);
    expect(storeClock.errorMs).toBe(1);
    sample(5_000_020, 60);
    expect(storeClock.errorMs, "it lies within what is known").toBe(1);
    sample(5_001_000, 60);
    expect(storeClock.errorMs, "the store's clock was stepped").toBe(30);
  });

  it("follows a step at once and tells, but makes up drift slowly and never backwards", () => {
    const { state, storeClock, sample, settle } = machine();
    settle(5_000_000);
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
    expect(storeClock.now() - state.monoMs).toBe(4_999_800);
    sample(4_000_000, 2);
    expect(steps).toBe(1);
    expect(storeClock.now() - state.monoMs).toBe(4_000_000);
  });

  it("is never wrong by more than half its best round trip and the drift, and never runs backwards without a step", () => {
    const samples = fc.array(
      fc.record({
        waitMs: fc.integer({ min: 0, max: 5_000 }),
        roundTripMs: fc.integer({ min: 1, max: 400 }),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      { minLength: 1, maxLength: 40 },
    );
    fc.assert(
      fc.property(samples, (given) => {
        const { state, storeClock, sample, settle } = machine();
        const aheadMs = 7_000_000;
        settle(aheadMs);
        let best = 1;
        let last = Number.NEGATIVE_INFINITY;
        for (const { waitMs, roundTripMs, share } of given) {
          state.monoMs += waitMs;
          sample(aheadMs, roundTripMs, share);
          best = Math.min(best, roundTripMs / 2);
          const now = storeClock.now();
          expect(now).toBeGreaterThanOrEqual(last);
          last = now;
          // Long enough for all that is still being made up.
          state.monoMs += 20_000;
          expect(Math.abs(storeClock.now() - state.monoMs - aheadMs)).toBeLessThanOrEqual(
            best + given.length * 5 + 1e-6,
          );
          last = storeClock.now();
        }
      }),
    );
  });
});
