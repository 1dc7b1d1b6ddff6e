import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Store } from "../store/store.ts";
import { StoreClock } from "../store/store-clock.ts";
import { Janitor } from "./janitor.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Creates a janitor whose store does nothing, except for the functions that a test passes. */
function stage({
  rotate = () => undefined,
  look = () => undefined,
  fold = () => 0,
  looksAtReleases = () => undefined,
  forgets = () => undefined,
}: {
  rotate?: (nowMs: number) => void;
  look?: () => void;
  fold?: () => number;
  looksAtReleases?: (graceMs: number) => void;
  forgets?: (nowMs: number) => void;
}) {
  const clock = new VirtualClock(1_000_000);
  const storeClock = new StoreClock(clock);
  let term: number | null = 1;
  const store = {
    history: {
      rotate: async (nowMs: number) => {
        rotate(nowMs);
        return { created: [], dropped: [] };
      },
    },
    runs: { endExpired: async () => 0, forgetKeys: async (nowMs: number) => forgets(nowMs) },
    sessions: { sweep: async () => undefined },
    access: { sweep: async () => undefined },
    quotas: { measureHistory: async () => undefined },
    tasks: {
      async takeUpLeft() {
        look();
        return 0;
      },
      foldCounters: async () => fold(),
      adoptLeft: async (graceMs: number) => {
        looksAtReleases(graceMs);
        return [];
      },
      forgetReleases: async () => undefined,
    },
  } as unknown as Store;
  const membership = { term: () => term } as Membership;
  const janitor = new Janitor({
    store,
    membership,
    clock,
    storeClock,
    log: silentLog,
    keepMs: 1,
    releaseGraceMs: 60_000,
  });
  return {
    clock,
    storeClock,
    async pulse() {
      janitor.onPulse();
      // None of the promises of a round waits for a timer, so all of them have settled after this timeout.
      await new Promise((resolve) => setTimeout(resolve, 0));
    },
    resign() {
      term = null;
    },
  };
}

it("creates and drops partitions every hour, and at once after a step of the store's clock by days", async () => {
  const rotatedFor: number[] = [];
  const { clock, storeClock, pulse } = stage({ rotate: (nowMs) => rotatedFor.push(nowMs) });
  const after = async (ms: number, storeMs: number) => {
    rotatedFor.length = 0;
    clock.advance(ms);
    storeClock.sample(clock.monotonic(), storeMs, clock.monotonic());
    await pulse();
    return rotatedFor.map((at) => at / dayMs);
  };
  const second = 1_000 / dayMs;
  expect(await after(1_000, 100.99 * dayMs), "the first time").toEqual([100.99]);
  expect(await after(1_000, 101.01 * dayMs), "at midnight").toEqual([]);
  expect(await after(hourMs, 101.05 * dayMs), "an hour on").toEqual([101.05]);
  expect(await after(1_000, 110 * dayMs), "a machine slept").toEqual([110]);
  expect(await after(1_000, (110 + second) * dayMs), "once").toEqual([]);
  expect(await after(1_000, 105 * dayMs), "the clock was set back").toEqual([105]);
});

it("folds counters every minute while runs end, and ever less often while none do", async () => {
  const left = [50_000, 7];
  const folds: number[] = [];
  const { clock, pulse, resign } = stage({
    fold() {
      folds.push(clock.monotonic() / 60_000);
      return left.shift() ?? 0;
    },
  });
  const began = clock.monotonic() / 60_000;
  const minutes = async (count: number) => {
    folds.length = 0;
    for (let minute = 0; minute < count; minute++) {
      clock.advance(60_000);
      await pulse();
    }
    return folds.map((at) => Math.round(at - began));
  };
  expect(await minutes(12), "what fills a statement is asked for more at once").toEqual([1, 1, 2, 4, 8, 12]);
  left.push(3);
  expect(await minutes(6)).toEqual([16, 17]);
  resign();
  expect(await minutes(10), "it is the leader's work").toEqual([]);
});

it("looks for leftovers of changes and folds counters each minute, even if history cannot be dropped", async () => {
  const looks: number[] = [];
  const folds: number[] = [];
  const { clock, pulse } = stage({
    rotate() {
      throw new Error("must be owner of table run_history");
    },
    look: () => looks.push(seconds()),
    fold() {
      folds.push(seconds());
      return 0;
    },
  });
  const began = clock.monotonic();
  const seconds = () => (clock.monotonic() - began) / 1_000;
  for (let pulses = 0; pulses < 50; pulses++) {
    await pulse();
    clock.advance(3_000);
  }
  expect(looks).toEqual([0, 60, 120]);
  expect(folds).toEqual([60]);
});

it("drops keys without runs each minute, by the store's time", async () => {
  const forgot: number[] = [];
  const { clock, storeClock, pulse } = stage({ forgets: (nowMs) => forgot.push(nowMs - storeClock.now()) });
  for (let minute = 0; minute < 3; minute++) {
    await pulse();
    clock.advance(60_000);
  }
  expect(forgot).toEqual([0, 0, 0]);
});

it("as the leader, looks for unused definitions four times per grace time", async () => {
  const looks: number[] = [];
  const { clock, pulse, resign } = stage({
    looksAtReleases(graceMs) {
      expect(graceMs).toBe(60_000);
      looks.push((clock.monotonic() - began) / 1_000);
    },
  });
  const began = clock.monotonic();
  const minute = async () => {
    for (let pulses = 0; pulses < 20; pulses++) {
      await pulse();
      clock.advance(3_000);
    }
  };
  await minute();
  resign();
  await minute();
  expect(looks).toEqual([0, 15, 30, 45]);
});
