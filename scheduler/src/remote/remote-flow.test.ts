import { describe, expect, test } from "vitest";
import type { PollAnswer, PollRequest } from "../api/worker-protocol.ts";
import { limits } from "../base/limits.ts";
import { RemoteFlow } from "./remote-flow.ts";

type Part = Omit<PollRequest, "session" | "join">;

/** Returns a session whose server responds with `answer`, and the list of the requests that the server received. */
function served(answer: (part: Part) => Partial<PollAnswer>) {
  const asked: Part[] = [];
  const pollUntilAnswered = async (part: Part) => {
    asked.push(part);
    return { refused: [], ...answer(part) } as unknown as PollAnswer;
  };
  return { asked, flow: new RemoteFlow({ pollUntilAnswered }) };
}

const asking = { runId: 1, fence: 9 };
const refusal = (code: string) => ({
  refused: [{ ...asking, part: "spawn" as const, status: 409, code, message: "no" }],
});

describe("a handler's requests over HTTP", () => {
  test("inputs are read page by page, each page after the last input of the previous one", async () => {
    const input = (runId: number) => ({
      runId,
      task: "t",
      key: null,
      slotMs: null,
      outcome: "succeeded" as const,
      result: runId,
      error: null,
    });
    const { asked, flow } = served(({ inputsOf }) => {
      const after = inputsOf?.afterRunId ?? 0;
      return { inputs: { ...asking, inputs: [input(after + 1), input(after + 2)], more: after < 4 } };
    });
    expect((await flow.inputs(asking)).map(({ runId }) => runId)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(asked.map(({ inputsOf }) => inputsOf?.afterRunId)).toEqual([0, 2, 4]);
  });

  test("children are sent in requests of limited count and size, and are returned in order", async () => {
    let made = 0;
    const { asked, flow } = served(({ spawns = [] }) => ({
      spawned: spawns.map(({ children }) => ({
        ...asking,
        children: children.map(() => ({ runId: ++made, created: true })),
      })),
    }));
    const taskId = await flow.taskId("t", asking);
    expect(await flow.taskId("t", asking)).toBe(taskId);
    expect(asked).toEqual([{ spawns: [{ ...asking, children: [], join: "t" }] }]);
    const many = Array.from({ length: 2_500 }, (_, n) => ({ taskId, key: `${n}`, payload: null }));
    expect((await flow.spawn(asking, many)).map(({ runId }) => runId)).toEqual(many.map((_, n) => n + 1));
    const sizes = () => asked.slice(1).map(({ spawns }) => spawns?.[0]?.children.length);
    expect(sizes()).toEqual([1_000, 1_000, 500]);
    asked.length = 1;
    const large = JSON.stringify("x".repeat(limits.payloadBytes - 2));
    await flow.spawn(
      asking,
      Array.from({ length: 40 }, (_, n) => ({ taskId, key: `${n}`, payload: large })),
    );
    expect(Math.max(...sizes().map(Number))).toBeLessThanOrEqual(16);
    expect(sizes().reduce<number>((sum, size) => sum + Number(size), 0)).toBe(40);
  });

  test("a lost claim is a stale fence for its handler, whatever error the server returns", async () => {
    for (const code of ["FENCE_STALE", "CLAIM_FOREIGN", "RUN_UNKNOWN"]) {
      const { flow } = served(() => refusal(code));
      await expect(flow.spawn(asking, [{ taskId: 0, key: "a", payload: null }])).rejects.toMatchObject({
        code: "FENCE_STALE",
      });
      await expect(flow.inputs(asking)).rejects.toMatchObject({ code: "FENCE_STALE" });
      expect(await flow.saveState(1, 9, "{}")).toBe(false);
    }
    const { flow } = served(() => refusal("PAYLOAD_TOO_LARGE"));
    await expect(flow.saveState(1, 9, "{}")).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    await expect(served(() => refusal("TASK_UNKNOWN")).flow.taskId("x", asking)).rejects.toMatchObject({
      code: "TASK_UNKNOWN",
    });
  });
});
