import { describe, expect, it } from "vitest";
import { staleWrite } from "../src/locks/writes.ts";
import type { Noted } from "../src/order.ts";
import { executionsOf } from "../src/recorded.ts";

const start = (fence: number, at: number, believedMs: number): Noted => ({
  ...{ kind: "start", node: "w1", life: 1, run: fence, task: "t1", attempt: 1, fence, slotMs: null, dueMs: 0 },
  ...{ at, believedMs, deaf: false },
});

describe("what processes noted", () => {
  const stood = [{ node: "w1", fromMs: 1_000, toMs: 9_000 }];

  it("counts a start that was decided before its process stood still for that moment", () => {
    const [execution] = executionsOf([start(1, 59_001, 1_000_999)], 50_000, 1_000_000, stood);
    expect(execution?.startMs).toBe(1_000);
  });

  it("counts one that was decided when it went on for what it is", () => {
    const [execution] = executionsOf([start(1, 59_001, 1_009_001)], 50_000, 1_000_000, stood);
    expect(execution?.startMs).toBe(9_001);
  });

  it("keeps a fence that was started twice, and ends by fence", () => {
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

it("finds a write under a fence that is over, and none that is not", () => {
  const writes = (...fences: number[]) => fences.map((fence, seq) => ({ seq, fence, writer: `of ${fence}` }));
  expect(staleWrite(writes(1, 1, 2, 2, 5))).toBeUndefined();
  expect(staleWrite(writes(1, 2, 1))?.what).toBe("of 1 wrote under fence 1, after of 2 under fence 2");
});
