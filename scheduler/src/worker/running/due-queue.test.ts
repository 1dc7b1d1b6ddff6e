import { describe, expect, it } from "vitest";
import { DueQueue } from "./due-queue.ts";
import type { HeldRun } from "./held-run.ts";

const run = (taskId: number, runId: number, priority = 5) =>
  ({ id: runId, claim: { taskId, runId, priority } }) as unknown as HeldRun;
const drain = (queue: DueQueue) => {
  const ids: number[] = [];
  for (let one = queue.shift(); one !== undefined; one = queue.shift()) ids.push(one.id);
  return ids;
};

describe("due runs that wait for capacity", () => {
  it("tasks alternate, each with its runs in order", () => {
    const queue = new DueQueue();
    for (const id of [1, 2, 3, 4]) queue.push(run(1, id), 0);
    for (const id of [21, 22]) queue.push(run(2, id), 0);
    queue.push(run(3, 31), 0);
    expect(queue.taskIds).toEqual(new Set([1, 2, 3]));
    expect(new Set(queue.firstTaskIds)).toEqual(queue.taskIds);
    expect(drain(queue)).toEqual([1, 21, 31, 2, 22, 3, 4]);
    expect(queue.size).toBe(0);
    expect(queue.taskIds).toEqual(new Set());
  });

  it("a task that joins a thousand runs of another task is second, not last", () => {
    const queue = new DueQueue();
    for (let id = 0; id < 3_000; id++) queue.push(run(1, id), 0);
    expect([queue.shift()?.id, queue.shift()?.id]).toEqual([0, 1]);
    queue.push(run(2, 9_999), 0);
    expect([queue.shift()?.id, queue.shift()?.id, queue.shift()?.id]).toEqual([2, 9_999, 3]);
    expect(drain(queue)).toEqual(Array.from({ length: 2_996 }, (_, i) => i + 4));
  });

  it("a higher priority goes first, whatever the task", () => {
    const queue = new DueQueue();
    queue.push(run(1, 1, 5), 0);
    queue.push(run(1, 2, 9), 0);
    queue.push(run(2, 3, 7), 0);
    expect([queue.priority, queue.firstTaskIds]).toEqual([9, [1]]);
    expect(drain(queue)).toEqual([2, 3, 1]);
    expect(queue.priority).toBe(0);
  });

  it("runs that have waited too long are returned, except the first ones to start", () => {
    const queue = new DueQueue();
    for (const id of [1, 2, 3]) queue.push(run(1, id), 100);
    queue.push(run(2, 21), 100);
    queue.push(run(1, 4), 900);
    expect(queue.takeOverdue(500, 2).map(({ id }) => id)).toEqual([2, 3]);
    expect(queue.size).toBe(3);
    expect(drain(queue)).toEqual([1, 21, 4]);
  });

  it("a queue that is never empty takes memory only for its waiting runs", () => {
    const queue = new DueQueue();
    for (let id = 0; id < 50_000; id++) {
      queue.push(run(id % 3, id), 0);
      if (id > 10) queue.shift();
    }
    expect(queue.size).toBe(11);
    expect(drain(queue)).toHaveLength(11);
  });
});
