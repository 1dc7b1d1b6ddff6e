import { describe, expect, it } from "vitest";
import { limits } from "../../base/limits.ts";
import type { ChildWrite, RunFlow } from "../../run/flow.ts";
import { HandedRun } from "./handed-run.ts";
import type { HeldRun } from "./held-run.ts";

/** Returns a fake run flow that records children; its first `failures` look-ups of a task's id fail. */
function stage(failures = 0) {
  const made: ChildWrite[] = [];
  let left = failures;
  const flow = {
    taskId: async () => {
      if (left-- > 0) throw new Error("away");
      return 7;
    },
    spawn: async (_: unknown, writes: ChildWrite[]) => {
      made.push(...writes);
      return writes.map((_, place) => ({ runId: place, created: true }));
    },
    saveState: async () => true,
    inputs: async () => [],
  } as unknown as RunFlow;
  const told: unknown[] = [];
  const held = {
    id: 1,
    fence: 2,
    claim: {},
    progress: (value: unknown) => void told.push(value),
    complete: async (_: unknown, result: unknown) => void told.push(result),
  } as unknown as HeldRun;
  const run = new HandedRun(held, { flow, secrets: undefined, now: () => 0 });
  return { run, made, told };
}

describe("a handler's use of its run", () => {
  it("a child that could not be requested can be requested again", async () => {
    const { run, made } = stage(1);
    await expect(run.spawn("child", 1, { key: "a" })).rejects.toThrow("away");
    await run.spawn("child", 1, { key: "a" });
    expect(made).toEqual([{ taskId: 7, payload: "1", key: "a" }]);
  });

  it("the run's methods can be destructured and called without the run", async () => {
    const { run, made, told } = stage();
    const { spawn, fanOut, continueAs, inputs, saveState, progress, complete, secret } = run;
    await spawn("child", 1, { key: "a" });
    await fanOut([{ task: "child", payload: 2 }], { join: "join" });
    expect(made.map(({ payload }) => payload)).toEqual(["1", "2"]);
    expect(continueAs(3)).toMatchObject({ onward: { kind: "continue", payload: "3" } });
    await saveState({ at: 4 });
    expect(run.state).toEqual({ at: 4 });
    expect(await inputs()).toEqual([]);
    progress(0.5);
    await complete({ query: async () => ({ rows: [] }) }, "done");
    expect(told).toEqual([0.5, "done"]);
    await expect(secret("NAME")).rejects.toMatchObject({ code: "STORE_NEEDED" });
  });

  it("too many children are refused before the first is made", async () => {
    const { run, made } = stage();
    await run.spawn("child");
    const many = Array.from({ length: limits.children }, () => ({ task: "child" }));
    await expect(run.fanOut(many, { join: "join" })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    expect(made).toHaveLength(1);
    await run.fanOut(many.slice(1), { join: "join" });
    expect(made).toHaveLength(limits.children);
  });
});
