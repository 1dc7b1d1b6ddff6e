import { describe, expect, it } from "vitest";
import { beliefsOf, overlapsOf } from "../src/check/locks/beliefs.ts";
import { firstLockViolation } from "../src/check/locks/checkers.ts";
import { staleWrite } from "../src/check/locks/writes-fenced.ts";
import type { Attempt, GiveUp, Grant, LockHistory, LockWrite, Look } from "../src/lock-history.ts";

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
interface Story {
  grants: Mutable<Grant>[];
  giveUps: Mutable<GiveUp>[];
  looks: Mutable<Look>[];
  acts: LockHistory["acts"];
  writes: Mutable<LockWrite>[];
  attempts: Mutable<Attempt>[];
  forgotMs: number[];
}

const graceMs = 10_000;

/**
 * Returns a history of two locks. The plain lock "ledger" is held and released by `a`, then by `b`. The holder `a` of the grace lock
 * "nightly" vanishes and takes the lock back within the grace; then `a` vanishes for longer, `b` takes the lock over and releases it,
 * and `a` gets it again.
 */
function story(): Story {
  const grant = (
    lock: string,
    fence: number,
    owner: string,
    givenMs: number,
    endedMs: number | null,
  ): Mutable<Grant> => ({
    lock,
    fence,
    owner,
    process: `${owner} life 1`,
    session: `of ${fence}`,
    givenMs,
    endedMs,
    ended: endedMs === null ? null : "released",
    graceMs: lock === "nightly" ? graceMs : null,
  });
  const grants = [
    grant("ledger", 1, "a", 1_000, 3_000),
    grant("ledger", 2, "b", 2_000, 5_000),
    { ...grant("nightly", 1, "a", 1_000, 20_000), ended: "vanished" as const },
    { ...grant("nightly", 2, "a", 21_000, 30_000), ended: "vanished" as const },
    grant("nightly", 3, "b", 40_500, 60_000),
    grant("nightly", 4, "a", 61_000, null),
  ];
  const released = grants.filter(({ ended }) => ended === "released");
  const had = grants.map((one) => ({
    ...one,
    untilMs: (one.endedMs ?? 70_000) - 10,
    fromMs: Math.max(one.givenMs + 1, one.lock === "ledger" && one.fence === 2 ? 3_001 : 0),
  }));
  return {
    grants,
    giveUps: released.map(({ lock, process, fence, endedMs }) => ({
      lock,
      process,
      fence,
      atMs: endedMs as number,
      changed: true,
    })),
    looks: had.flatMap(({ lock, process, fence, fromMs, untilMs }) =>
      [fromMs, untilMs].map((atMs) => ({ lock, permits: 1, process, holding: `${process} ${fence}`, fence, atMs })),
    ),
    writes: had.map(({ lock, process, fence, fromMs }) => ({ lock, process, fence, atMs: fromMs, accepted: true })),
    attempts: had.map(({ lock, process, fence, givenMs }) => ({
      lock,
      process,
      askedMs: givenMs - 10,
      endedMs: givenMs + 5,
      fence,
    })),
    acts: [],
    forgotMs: [],
  };
}

const historyOf = (told: Story): LockHistory => ({ ...told, calmFromMs: 50_000, endMs: 200_000, slackMs: 0 });
const of = <T extends { lock: string; fence: number | null }>(all: T[], lock: string, fence: number): T =>
  all.find((one) => one.lock === lock && one.fence === fence) as T;

it("finds no violation in a correct lock history", () => {
  expect(firstLockViolation(historyOf(story()))).toBeUndefined();
  expect(overlapsOf(beliefsOf(story()))).toEqual([]);
});

it.each<[string, RegExp, (told: Story) => unknown]>([
  [
    "a fence that was had before",
    /^7: .*fence 1, after a life 1 had 1/,
    ({ grants }) => {
      of(grants, "ledger", 2).fence = 1;
    },
  ],
  [
    "a write under an old fence that was taken",
    /^8: .*wrote under fence 1, after b/,
    ({ writes }) => writes.push({ ...of(writes, "ledger", 1), atMs: 6_000 }),
  ],
  [
    "a write by two under one fence",
    /^8: .*both wrote under fence 2/,
    ({ writes }) => writes.splice(2, 0, { ...of(writes, "ledger", 2), process: "a life 1" }),
  ],
  [
    "two that believe at the same time",
    /^8: .*all had it at the same time/,
    ({ looks, grants }) => {
      of(grants, "ledger", 1).endedMs = 4_000;
      looks.push({ ...of(looks, "ledger", 1), atMs: 3_500 });
    },
  ],
  [
    "one who acts by a session that is over",
    /^9: .*600.0 ms after that was over/,
    ({ looks }) => looks.push({ ...of(looks, "nightly", 1), holding: "another", atMs: 20_600 }),
  ],
  [
    "one who takes another's node for its own",
    /^9: .*fence 2, which is b life 1's/,
    ({ looks }) => looks.push({ ...of(looks, "ledger", 2), process: "b life 2", atMs: 4_000 }),
  ],
  [
    "one who has what was never given",
    /^9: .*never given/,
    ({ looks }) => looks.push({ ...of(looks, "ledger", 2), fence: 77, atMs: 4_000 }),
  ],
  [
    "another that does not wait the grace out",
    /^10: .*9900.0 ms after a life 1 had vanished/,
    ({ grants }) => {
      of(grants, "nightly", 3).givenMs = 39_900;
    },
  ],
  [
    "a grace that is the taker's, and shorter than the holder's",
    /^10: .*within the grace of 10000/,
    ({ grants }) => {
      Object.assign(of(grants, "nightly", 3), { graceMs: 5_000, givenMs: 36_000 });
    },
  ],
  [
    "one that is taken while another has it",
    /^10: .*while a life 1 had it/,
    ({ grants }) => {
      of(grants, "nightly", 2).endedMs = 41_000;
    },
  ],
  [
    "a reclaim that keeps its fence",
    /^10: .*took it back under fence 1, and had had 1/,
    ({ grants }) => {
      of(grants, "nightly", 2).fence = 1;
    },
  ],
  [
    "a grace after a release in order",
    /^10: .*waited 9500 ms for what b life 1 had released/,
    ({ grants, attempts }) => {
      of(grants, "nightly", 4).givenMs = 69_500;
      of(attempts, "nightly", 4).askedMs = 55_000;
    },
  ],
  [
    "a release of what is another's",
    /^11: .*by a life 1 under fence 2 was carried out, which is b/,
    ({ giveUps }) => giveUps.push({ lock: "ledger", process: "a life 1", fence: 2, atMs: 4_000, changed: true }),
  ],
  [
    "a release under an old fence that does something",
    /^11: .*fence 1 was carried out, 1000.0 ms after/,
    ({ giveUps }) => giveUps.push({ ...of(giveUps, "ledger", 1), atMs: 4_000 }),
  ],
  [
    "what another gave up",
    /^11: .*fence 2 of b life 1 was given up, and not by it/,
    ({ giveUps }) => giveUps.splice(giveUps.indexOf(of(giveUps, "ledger", 2)), 1),
  ],
  [
    "one who waits for ever",
    /^16: .*waited for it for/,
    ({ attempts }) =>
      attempts.push({ lock: "ledger", process: "b life 1", askedMs: 60_000, endedMs: null, fence: null }),
  ],
])("finds %s", (_, words, spoil) => {
  const told = story();
  spoil(told);
  const { invariant, what } = firstLockViolation(historyOf(told)) ?? {};
  expect(`${invariant} ${what}`).toMatch(words);
});

describe("allowed histories", () => {
  it("a late release without effect, and a refused late write", () => {
    const told = story();
    told.giveUps.push({ ...of(told.giveUps, "ledger", 1), atMs: 4_000, changed: false });
    told.writes.push({ ...of(told.writes, "ledger", 1), atMs: 6_000, accepted: false });
    expect(firstLockViolation(historyOf(told))).toBeUndefined();
    expect(staleWrite(told.writes)?.what).toMatch(/under fence 1/); // A resource that checks no fence would have accepted this write.
  });

  it("two processes that both believe they hold a lock that the service forgot: only measured", () => {
    const told = story();
    Object.assign(of(told.grants, "ledger", 1), { endedMs: 4_000 });
    told.looks.push({ ...of(told.looks, "ledger", 1), atMs: 3_501 });
    told.forgotMs.push(2_900);
    expect(firstLockViolation(historyOf(told))).toBeUndefined();
    expect(overlapsOf(beliefsOf(told))).toMatchObject([{ lock: "ledger", atMs: 3_001, forMs: 500 }]);
  });

  it("as many holders as there are permits", () => {
    const told = story();
    for (const look of told.looks) Object.assign(look, { permits: 2 });
    told.looks.push({ ...of(told.looks, "ledger", 1), atMs: 2_999 }, { ...of(told.looks, "ledger", 2), atMs: 2_500 });
    expect(overlapsOf(beliefsOf(told))).toEqual([]);
  });
});
