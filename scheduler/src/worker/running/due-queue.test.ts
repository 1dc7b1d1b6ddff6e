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

describe("what is due and waits for a place", () => {
  it("tasks take turns, each with its runs in order", () => {
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

  it("one that comes to a thousand of another's is second, not last", () => {
    const queue = new DueQueue();
    for (let id = 0; id < 3_000; id++) queue.push(run(1, id), 0);
    expect([queue.shift()?.id, queue.shift()?.id]).toEqual([0, 1]);
    queue.push(run(2, 9_999), 0);
    expect([queue.shift()?.id, queue.shift()?.id, queue.shift()?.id]).toEqual([2, 9_999, 3]);
    expect(drain(queue)).toEqual(Array.from({ length: 2_996 }, (_, i) => i + 4));
  });

  it("a higher priority goes first, whatever its task", () => {
    const queue = new DueQueue();
    queue.push(run(1, 1, 5), 0);
    queue.push(run(1, 2, 9), 0);
    queue.push(run(2, 3, 7), 0);
    expect([queue.priority, queue.firstTaskIds]).toEqual([9, [1]]);
    expect(drain(queue)).toEqual([2, 3, 1]);
    expect(queue.priority).toBe(0);
  });

  it("gives back what has waited too long, sparing the first whose turns come", () => {
    const queue = new DueQueue();
    for (const id of [1, 2, 3]) queue.push(run(1, id), 100);
    queue.push(run(2, 21), 100);
    queue.push(run(1, 4), 900);
    expect(queue.takeOverdue(500, 2).map(({ id }) => id)).toEqual([2, 3]);
    expect(queue.size).toBe(3);
    expect(drain(queue)).toEqual([1, 21, 4]);
  });

  it("a queue that is never empty stays as small as what waits in it", () => {
    const queue = new DueQueue();
    for (let id = 0; id < 50_000; id++) {
      queue.push(run(id % 3, id), 0);
      if (id > 10) queue.shift();
    }
    expect(queue.size).toBe(11);
    expect(drain(queue)).toHaveLength(11);
  });
});
