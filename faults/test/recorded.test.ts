import { describe, expect, it } from "vitest";
import { nodesOf } from "../src/locks/store-watch.ts";
import { lockHistoryOf } from "../src/locks/told.ts";
import type { Noted } from "../src/order.ts";
import { executionsOf } from "../src/recorded.ts";

const start = (fence: number, at: number, believedMs: number): Noted => ({
  kind: "start",
  node: "w1",
  life: 1,
  run: fence,
  task: "t1",
  attempt: 1,
  fence,
  slotMs: null,
  dueMs: 0,
  at,
  believedMs,
  deaf: false,
});

describe("executions read from the processes' notes", () => {
  const stood = [{ node: "w1", fromMs: 1_000, toMs: 9_000 }];

  it("dates a start that was decided before its process was stopped to the moment of the stop", () => {
    const [execution] = executionsOf([start(1, 59_001, 1_000_999)], 50_000, 1_000_000, stood);
    expect(execution?.startMs).toBe(1_000);
  });

  it("leaves a start that was decided after its process resumed at its own time", () => {
    const [execution] = executionsOf([start(1, 59_001, 1_009_001)], 50_000, 1_000_000, stood);
    expect(execution?.startMs).toBe(9_001);
  });

  it("keeps both starts of one fence, and assigns an end by its fence", () => {
    const end: Noted = { kind: "end", at: 50_400, fence: 1, how: "returned", why: null };
    const executions = executionsOf(
      [start(1, 50_100, 1_000_100), start(1, 50_200, 1_000_200), end],
      50_000,
      1_000_000,
      [],
    );
    expect(executions.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
      [100, 400],
      [200, null],
    ]);
  });
});

describe("lock history read from the store", () => {
  const line = (at_ms: number, was: string[] | null, now: string[], fences: number[]) => ({
    at_ms,
    what: "lock" as const,
    was: was && row({ line: was }),
    now: row({ line: now, fences }),
  });
  const row = (over: object) => ({
    id: 0,
    name: "lock:ledger",
    line: [],
    fences: [],
    holder: null,
    fence: 0,
    record: { owner: "a", released: false },
    ...over,
  });

  it("shows a token as held from its entry until it leaves, or until its session ends", () => {
    const nodes = nodesOf([
      line(1, null, ["7.1"], [10]),
      line(2, ["7.1"], ["7.1", "8.1"], [10, 11]),
      { at_ms: 3, what: "lock_session", was: row({ id: 8 }), now: null },
      line(4, ["7.1", "8.1"], ["8.1"], [11]),
    ]);
    expect(nodes).toMatchObject([
      { lock: "ledger", fence: 10, session: "7", givenMs: 1, endedMs: 4 },
      { lock: "ledger", fence: 11, session: "8", givenMs: 2, endedMs: 3 },
    ]);
  });

  it("counts a grace lock as released if its record says so, and as vanished otherwise", () => {
    const held = (at_ms: number, was: string | null, now: string | null, fence: number, released = false) => ({
      at_ms,
      what: "grace_lock" as const,
      was: row({ name: "nightly", holder: was, fence }),
      now: row({ name: "nightly", holder: now, fence, record: { owner: "a", released } }),
    });
    const nodes = nodesOf([
      held(1, null, "x", 1),
      held(5, "x", null, 1),
      held(6, null, "y", 2),
      held(9, "y", null, 2, true),
    ]);
    const its = { lock: "nightly", process: "a life 1" };
    const { grants } = lockHistoryOf({
      nodes,
      writes: [],
      graceMs: 2_000,
      endMs: 10,
      slackMs: 0,
      forgotMs: [],
      // The process took the lock back under fence 2 just when its use of the lock ended, so it still logs fence 1.
      notes: [
        { n: "look", ...its, holding: "1", fence: 1, atMs: 2 },
        { n: "releasing", ...its, fence: 1, atMs: 8 },
        { n: "released", ...its, fence: 1, changed: true },
      ],
    });
    expect(grants.map(({ fence, ended }) => [fence, ended])).toEqual([
      [1, "vanished"],
      [2, "released"],
    ]);
  });

  it("assigns a fence to its process even if the lock was given up before it was checked", () => {
    const its = { lock: "nightly", process: "a life 1", fence: 1 };
    const was = row({ name: "nightly", holder: null, fence: 1 });
    const { grants } = lockHistoryOf({
      writes: [],
      graceMs: 2_000,
      endMs: 10,
      slackMs: 0,
      forgotMs: [],
      nodes: nodesOf([{ at_ms: 1, what: "grace_lock", was, now: { ...was, holder: "x" } }]),
      notes: [
        { n: "got", ...its, holding: "1", askedMs: 1, atMs: 2 },
        { n: "releasing", ...its, atMs: 3 },
      ],
    });
    expect(grants.map(({ process }) => process)).toEqual(["a life 1"]);
  });
});
