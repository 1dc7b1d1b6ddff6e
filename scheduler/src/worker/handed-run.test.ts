import { describe, expect, it } from "vitest";
import type { ChildWrite, RunFlow } from "../flow.ts";
import { limits } from "../limits.ts";
import { HandedRun } from "./handed-run.ts";
import type { HeldRun } from "./held-run.ts";

/** A flow whose first so many questions for a task's number fail. */
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
  } as unknown as RunFlow;
  const run = new HandedRun({ id: 1, fence: 2, claim: {} } as HeldRun, { flow, secrets: undefined, now: () => 0 });
  return { run, made };
}

describe("what a handler makes of its run", () => {
  it("a child whose task could not be asked for can be asked for again", async () => {
    const { run, made } = stage(1);
    await expect(run.spawn("child", 1, { key: "a" })).rejects.toThrow("away");
    await run.spawn("child", 1, { key: "a" });
    expect(made).toEqual([{ taskId: 7, payload: "1", key: "a" }]);
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
