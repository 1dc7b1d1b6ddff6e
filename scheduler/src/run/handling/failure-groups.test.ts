import { describe, expect, it } from "vitest";
import { type Failure, failureGroups } from "./failure-groups.ts";

const failure = (endedMs: number, given: Partial<Failure> = {}): Failure => ({
  runId: endedMs,
  task: "load",
  endedMs,
  fingerprint: "a",
  release: null,
  releaseMs: null,
  ...given,
});
const time = { fromMs: 0, toMs: 100, parts: 4 };

describe("failures by reason", () => {
  it("have their number, first and last time, tasks and trend, the largest group first", () => {
    const failures = [
      failure(99),
      failure(98, { fingerprint: "b", task: "store" }),
      failure(60, { task: "audit" }),
      failure(0),
    ];
    expect(failureGroups(failures, time)).toEqual([
      {
        fingerprint: "a",
        runs: 3,
        firstMs: 0,
        lastMs: 99,
        lastRunId: 99,
        tasks: ["audit", "load"],
        broughtBy: null,
        trend: [1, 0, 1, 1],
      },
      {
        fingerprint: "b",
        runs: 1,
        firstMs: 98,
        lastMs: 98,
        lastRunId: 98,
        tasks: ["store"],
        broughtBy: null,
        trend: [0, 0, 0, 1],
      },
    ]);
    expect(failureGroups([], time)).toEqual([]);
  });

  it.each([
    ["began within the time, before the first failure", [failure(50, { release: "2", releaseMs: 40 })], "2"],
    ["was there before the time", [failure(50, { release: "1", releaseMs: -5 })], null],
    ["came after the first failure", [failure(70, { release: "2", releaseMs: 40 }), failure(30)], null],
    ["is not known", [failure(50)], null],
    ["is of another time", [failure(50, { release: "2", releaseMs: 60 })], null],
  ] as const)("name the release that brought the reason: one that %s", (_, failures, release) => {
    expect(failureGroups(failures, time)[0]?.broughtBy).toBe(release);
  });

  it("count a time at or beyond the bounds in the parts at the bounds", () => {
    expect(failureGroups([failure(100), failure(-1)], time)[0]?.trend).toEqual([1, 0, 0, 1]);
  });
});
