import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import { type Sweep, sweeps } from "../cluster/sweeps.ts";
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
  releaseGraceMs = 60_000,
}: {
  rotate?: (nowMs: number) => void;
  look?: () => unknown;
  fold?: () => number;
  looksAtReleases?: (graceMs: number) => void;
  forgets?: (nowMs: number) => void;
  releaseGraceMs?: number;
}) {
  const clock = new VirtualClock(1_000_000);
  const storeClock = new StoreClock(clock);
  let term: number | null = 1;
  /** The sweeps that were made, except the folding of counters. */
  const swept: string[] = [];
  const sweeping =
    <Answer>(name: Sweep, answer: Answer) =>
    async () => {
      swept.push(name);
      return answer;
    };
  const store = {
    history: {
      rotate: async (nowMs: number) => {
        rotate(nowMs);
        return { created: [], dropped: [] };
      },
    },
    runs: {
      endExpired: sweeping("expiredRuns", 0),
      async forgetKeys(nowMs: number) {
        swept.push("knownKeys");
        forgets(nowMs);
      },
    },
    sessions: { sweep: sweeping("sessions", undefined) },
    access: { sweep: async () => undefined },
    audit: { chainSkipped: sweeping("auditRows", undefined) },
    workers: { revokeExpired: sweeping("workerKeys", []) },
    quotas: { measureHistory: sweeping("historySizes", undefined) },
    tasks: {
      removeEnded: sweeping("endedTasks", []),
      async takeUpLeft() {
        swept.push("changedTasks");
        await look();
        return 0;
      },
      foldCounters: async () => fold(),
      async adoptLeft(graceMs: number) {
        swept.push("releases");
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
    releaseGraceMs,
  });
  return {
    clock,
    storeClock,
    /**
     * @param sweeps the sweeps that the heartbeat reports; undefined if it reports none
     * @returns the sweeps that were made because of the heartbeat
     */
    async pulse(sweeps?: Sweep[]): Promise<string[]> {
      swept.length = 0;
      janitor.onPulse(sweeps ? { sweeps } : {});
      // None of the promises of a round waits for a timer, so all of them have settled after this timeout.
      await new Promise((resolve) => setTimeout(resolve, 0));
      return [...swept].sort();
    },
    resign() {
      term = null;
    },
    lead() {
      term = 1;
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
  expect(folds).toEqual([0, 120]);
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

it("a sweep that waits for a lock delays no other, and is not made twice", async () => {
  let unlock: () => void = () => undefined;
  const locked = new Promise<void>((resolve) => {
    unlock = resolve;
  });
  const { clock, pulse } = stage({ look: () => locked });
  expect(await pulse()).toEqual(["changedTasks", "historySizes", "releases", "sessions"]); // sessions by the rotation
  clock.advance(5_000);
  expect(await pulse()).toEqual(["auditRows", "endedTasks", "expiredRuns", "knownKeys", "sessions", "workerKeys"]);
  clock.advance(60_000);
  expect(await pulse()).not.toContain("changedTasks");
  unlock();
  await pulse();
  clock.advance(60_000);
  expect(await pulse()).toContain("changedTasks");
});

/** The sweeps that an idle leader makes when it has no report, except the folding of counters. */
const all = sweeps.filter((sweep) => sweep !== "counters").sort();

it("makes only the sweeps for which the store reports something, each once a minute, and all of them without a report", async () => {
  const { clock, pulse } = stage({});
  expect(await pulse(), "no report yet").toEqual([...all, "sessions"].sort()); // ended sessions are swept with the rotation too
  const after = (ms: number, reported?: Sweep[]) => {
    clock.advance(ms);
    return pulse(reported);
  };
  for (let half = 0; half < 20; half++) expect(await after(30_000, []), "nothing to do").toEqual([]);
  expect(await after(3_000, ["expiredRuns"]), "something appears").toEqual(["expiredRuns"]);
  expect(await after(30_000, ["expiredRuns", "auditRows"]), "and more").toEqual(["auditRows"]);
  expect(await after(30_000), "still there after a minute").toEqual(["expiredRuns"]);
  expect(await after(3_000, [])).toEqual([]);
  for (const sweep of all) expect(await after(61_000, [sweep]), sweep).toEqual([sweep]);
  const last = all.at(-1) as Sweep;
  expect(await after(60_000), "the report is a minute old").toEqual([last]);
  expect(await after(1_000), "and then too old").toEqual(all.filter((sweep) => sweep !== last));
});

it("a leader that led before does not rely on the report of that time", async () => {
  const { clock, pulse, resign, lead } = stage({});
  await pulse([]);
  clock.advance(3_000);
  resign();
  expect(await pulse()).toEqual([]);
  clock.advance(3_000);
  lead();
  expect(await pulse()).toEqual(all);
});

it("folds counters as soon as they are reported after a quiet time, and at each full hour", async () => {
  const folds: number[] = [];
  const { clock, storeClock, pulse } = stage({
    fold() {
      folds.push(storeClock.now());
      return 0;
    },
  });
  const beganMs = hourMs - 31 * 60_000;
  storeClock.sample(clock.monotonic(), beganMs, clock.monotonic());
  await pulse([]);
  folds.length = 0; // the janitor was made in another hour
  const minutes = async (count: number, reported: Sweep[]) => {
    folds.length = 0;
    for (let half = 0; half < 2 * count; half++) {
      clock.advance(30_000);
      await pulse(reported);
    }
    return folds.map((atMs) => Math.round((atMs - beganMs) / 30_000) / 2);
  };
  expect(await minutes(20, [])).toEqual([]);
  expect(await minutes(8, ["counters"]), "less and less often, if nothing is found").toEqual([20.5, 22.5, 26.5]);
  expect(await minutes(1, []), "nothing is left").toEqual([]);
  expect(await minutes(1, ["counters"]), "a minute after the last").toEqual([29.5]);
  expect(await minutes(1, []), "a full hour").toEqual([31]);
});

it("does not rely on a report for releases whose grace time could be over before the next one", async () => {
  const { clock, pulse } = stage({ releaseGraceMs: 8_000 });
  await pulse([]);
  clock.advance(2_000);
  expect(await pulse([])).toEqual(["releases"]);
});
