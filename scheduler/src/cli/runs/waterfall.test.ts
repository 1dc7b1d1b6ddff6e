import { describe, expect, it } from "vitest";
import type { AttemptRecord, RunRecord } from "../../run/run-record.ts";
import { uncoloured } from "../screen/style.ts";
import { widthOf } from "../screen/text.ts";
import { barsOf, waterfallLines } from "./waterfall.ts";

const run = (over: Partial<RunRecord>): RunRecord => ({
  runId: 42,
  task: "backup",
  taskId: 1,
  version: 1,
  state: "succeeded",
  source: "slot",
  priority: 5,
  key: null,
  slotMs: 1_000,
  dueMs: 1_000,
  createdMs: 0,
  claimedMs: 500,
  startedMs: 1_000,
  endedMs: 2_000,
  attempt: 1,
  fence: 9,
  node: "atlas",
  payload: null,
  progress: null,
  result: null,
  error: null,
  ...over,
});
const lost: AttemptRecord = {
  attempt: 1,
  fence: 8,
  node: "maria",
  claimedMs: 500,
  startedMs: 1_000,
  endedMs: 1_500,
  outcome: "failed",
  error: { code: "WORKER_LOST", message: "maria fell silent" },
};
const drawn = (record: RunRecord, attempts: AttemptRecord[] = [], nowMs = 9_000, width = 54) =>
  waterfallLines(record, barsOf(record, attempts), nowMs, width, uncoloured);

describe("a run's waterfall", () => {
  it("shows how long the run was claimed and how long it ran", () => {
    expect(drawn(run({}))).toEqual([`  try 1   ${"░".repeat(7)}${"█".repeat(13)}  1.0 s       succeeded`]);
  });

  it("shows how long the run waited for a worker", () => {
    expect(drawn(run({ claimedMs: 2_000, startedMs: 2_000, endedMs: 3_000 }))).toEqual([
      `  try 1   ${"·".repeat(10)}${"█".repeat(10)}  1.0 s       succeeded`,
    ]);
  });

  it("shows all attempts on one scale, each with its outcome", () => {
    const lines = drawn(run({ attempt: 2, claimedMs: 2_500, startedMs: 2_500, endedMs: 4_500 }), [lost], 9_000, 70);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/░{5}█{4} .* failed: W…$/);
    expect(lines[1]).toMatch(/^ {2}try 2 {3,} {18}█{18} {2}2\.0 s {7}succeeded$/);
  });

  it("shows a running attempt up to now, and an instant attempt as one mark", () => {
    expect(drawn(run({ state: "claimed", endedMs: null }), [], 1_500)[0]).toContain(
      `${"░".repeat(10)}${"█".repeat(10)}`,
    );
    expect(drawn(run({ claimedMs: 0, startedMs: 1_000, endedMs: 1_000 }))[0]).toContain(`${"░".repeat(19)}█ `);
  });

  it("is empty before the first claim, and keeps past attempts while the run waits for the next", () => {
    const waiting = { state: "ready", claimedMs: null, startedMs: null, endedMs: null, fence: null } as const;
    expect(drawn(run({ ...waiting, attempt: 0 }))).toEqual([]);
    expect(drawn(run({ ...waiting, attempt: 1 }), [lost])).toHaveLength(1);
  });

  it("fits the width of the terminal", () => {
    for (const width of [44, 60, 110]) {
      for (const line of drawn(run({}), [], 9_000, width)) expect(widthOf(line)).toBeLessThanOrEqual(width);
    }
  });
});
