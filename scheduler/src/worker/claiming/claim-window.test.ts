import { describe, expect, it } from "vitest";
import { recordingLog } from "../../../test/support/store-stage.ts";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import { beginning, binMs, type ComingAnswer, type ComingRequest } from "../../run/coming-runs.ts";
import { StoreClock } from "../../store/store-clock.ts";
import { ClaimWindow } from "./claim-window.ts";

const startMs = Date.UTC(2030, 0, 1);
const counted = (runs: Record<number, number>) =>
  Array.from({ length: 32 }, (_, bin) =>
    Object.entries(runs).reduce((sum, [inMs, n]) => sum + (Math.floor(Number(inMs) / binMs) === bin ? n : 0), 0),
  );

describe("the start of early claims", () => {
  const pace = { perRunMs: 0.05, aheadMs: 500, few: 2_000 };

  it("is given only for a burst, by the time that its claims take", () => {
    expect(beginning(counted({ 6000: 10_000 }), pace), "it takes as long as it is claimed ahead").toBeNull();
    expect(beginning(counted({ 6000: 100_000 }), pace)).toEqual({ atMs: 500, untilMs: 6_250 });
    expect(beginning(counted({ 6000: 2_000 }), { ...pace, perRunMs: 1 }), "one statement's").toBeNull();
    expect(beginning([], pace)).toBeNull();
  });

  it("includes earlier runs to claim, and reaches as far as claims are urgent", () => {
    expect(beginning(counted({ 4000: 30_000, 6000: 70_000 }), pace)).toEqual({ atMs: 500, untilMs: 6_250 });
    expect(beginning(counted({ 2000: 60_000, 7000: 40_000 }), pace)).toEqual({ atMs: -1_500, untilMs: 2_250 });
    expect(beginning(counted({ 2000: 60_000, 5000: 40_000 }), pace)).toEqual({ atMs: -1_500, untilMs: 5_250 });
  });
});

describe("the claim window", () => {
  function open(claimAheadMs = 1_000) {
    const clock = new VirtualClock(startMs);
    const storeClock = new StoreClock(clock);
    const asked: number[] = [];
    const told = {
      room: 100_000,
      answer: async (_: ComingRequest): Promise<ComingAnswer> => ({ counts: [], nextMs: null }),
    };
    let claims = 0;
    const window = new ClaimWindow({
      groupIds: [1],
      clock,
      storeClock,
      log: recordingLog().log,
      claimAheadMs,
      claims: {
        coming: (request) => {
          asked.push(request.nowMs - startMs);
          return told.answer(request);
        },
      },
      room: () => told.room,
      claim: () => void claims++,
    });
    const pass = async (ms: number) => {
      for (let left = ms; left > 0; left -= 100) {
        clock.advance(Math.min(100, left));
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    return { clock, window, asked, told, pass, claims: () => claims };
  }

  it("has its configured width; a coming burst is noticed 8 s before, and claimed sooner", async () => {
    const { window, asked, told, pass, claims } = open();
    told.answer = async ({ nowMs }) => ({ counts: counted({ [20_000 - (nowMs - startMs)]: 100_000 }), nextMs: null });
    expect(window.untilMs(startMs)).toBe(startMs + 1_000);
    expect(window.waitMs(startMs + 20_000)).toBe(19_000);
    await pass(12_200);
    expect(asked).toEqual([]);
    await pass(100);
    expect([asked, claims()]).toEqual([[12_250], 0]);
    await pass(2_000);
    expect([asked, claims()], "5.2 s of claims, half a second ahead").toEqual([[12_250, 14_250], 1]);
    expect(window.untilMs(startMs + 14_300)).toBe(startMs + 20_250);
    expect(window.waitMs(startMs + 20_000), "more of it is claimed at once").toBe(0);
    expect(window.untilMs(startMs + 30_000)).toBe(startMs + 31_000);
  });

  it("measures how long claims take, and begins accordingly", async () => {
    const { window, told, pass, claims } = open();
    told.answer = async ({ nowMs }) => ({ counts: counted({ [10_000 - (nowMs - startMs)]: 50_000 }), nextMs: null });
    for (let i = 0; i < 30; i++) window.took(2_000, 150);
    window.took(10, 10_000);
    window.waitMs(startMs + 10_000);
    await pass(4_200);
    expect(claims()).toBe(0);
    await pass(100);
    expect(claims(), "5.2 s by the pace rounded up, and half a second").toBe(1);
    expect(window.untilMs(startMs + 4_300)).toBe(startMs + 10_250);
  });

  it("counts at most every 2 s, includes later runs, and counts neither very near runs nor with no claim-ahead", async () => {
    const { window, asked, told, pass } = open();
    const laterMs = startMs + 16_000;
    told.answer = async ({ nowMs, aheadMs }) => ({
      counts: counted({ 5000: 3 }),
      nextMs: nowMs + aheadMs < laterMs ? laterMs : null,
    });
    window.waitMs(startMs + 900);
    await pass(100);
    expect(asked).toEqual([]);
    for (let i = 0; i < 10; i++) {
      window.waitMs(startMs + 5_000);
      await pass(100);
    }
    expect(asked, "from the beginning of a bin").toEqual([0]);
    await pass(10_000);
    expect(asked).toEqual([0, 2_000, 8_250]);
    const none = open(0);
    none.window.waitMs(startMs + 5_000);
    await none.pass(10_000);
    expect(none.asked).toEqual([]);
  });

  it("does not count while the worker has capacity for one claim only, and counts no more than its capacity", async () => {
    const { window, told, pass, asked, claims } = open();
    told.room = 2_000;
    window.waitMs(startMs + 5_000);
    await pass(100);
    expect(asked).toEqual([]);
    told.room = 2_001;
    told.answer = async ({ most }) => ({ counts: counted({ 4000: most }), nextMs: null });
    window.waitMs(startMs + 5_000);
    await pass(100);
    expect([asked.length, claims()]).toEqual([1, 0]);
  });

  it("has its configured width if the count fails, and does not count after its close", async () => {
    const { window, asked, told, pass, claims } = open();
    told.answer = () => Promise.reject(new Error("away"));
    window.waitMs(startMs + 5_000);
    await pass(1);
    expect([asked.length, claims(), window.untilMs(startMs)]).toEqual([1, 0, startMs + 1_000]);
    window.waitMs(startMs + 9_000);
    window.close();
    await pass(9_000);
    expect(asked).toHaveLength(1);
  });
});
