import { expect, test } from "vitest";
import { DueQueue } from "./due-queue.ts";
import type { HeldRun } from "./held-run.ts";
import { WaitingRuns } from "./waiting-runs.ts";

test("runs are released by due time, all of one time together and alternating between tasks, few or many", () => {
  const waiting = new WaitingRuns();
  const line = new DueQueue();
  const push = (dueMs: number, runId: number, taskId = 1) =>
    waiting.push({ claim: { runId, taskId, dueMs, priority: 5 } } as HeldRun);
  const ids = (nowMs = 100) => {
    waiting.shiftInto(line, nowMs);
    const found: number[] = [];
    for (let run = line.shift(); run !== undefined; run = line.shift()) found.push(run.claim.runId);
    return found;
  };
  push(200, 1);
  push(100, 2);
  push(200, 3);
  push(100, 4);
  expect(waiting.least).toBe(100);
  expect(ids()).toEqual([2, 4]);
  for (let runId = 1_000; runId < 1_200; runId++) push(100, runId);
  push(100, 5, 2);
  expect(waiting.least, "a time that was there before").toBe(100);
  const many = ids();
  expect(many.slice(0, 3)).toEqual([1_000, 5, 1_001]);
  expect(many).toHaveLength(201);
  expect(ids()).toEqual([1, 3]);
  for (let runId = 1_000; runId < 1_100; runId++) push(300, runId);
  waiting.shiftInto(line, 5_000);
  expect(line.takeOverdue(5_000, 0), "they came into line late, and wait since then").toEqual([]);
  expect(ids()).toHaveLength(100);
  expect(ids()).toEqual([]);
  expect(waiting.least).toBeUndefined();
});
