import { expect, it } from "vitest";
import { silentLog } from "../base/log.ts";
import type { Settlement } from "../run/claim-store.ts";
import { VerdictBatcher } from "./verdict-batcher.ts";

interface Sent {
  tasks: number[];
  fences: number[];
  answer: () => void;
}

/** A batcher whose store answers a statement only when the test calls `answer`. */
function batcher() {
  const sent: Sent[] = [];
  const acknowledged: number[] = [];
  const verdicts = new VerdictBatcher({
    claims: {
      settle: (_session, settlements) =>
        new Promise((resolve) => {
          const tasks = [...new Set(settlements.map(({ taskId }) => taskId))];
          const fences = settlements.map(({ fence }) => fence);
          sent.push({ tasks, fences, answer: () => resolve(new Set()) });
        }),
    },
    clock: { wall: () => 0, monotonic: () => 0, after: () => () => undefined },
    log: silentLog,
    now: () => 0,
    sessionId: () => 1,
    acknowledged: (settlements) => acknowledged.push(...settlements.map(({ fence }) => fence)),
  });
  let fence = 0;
  const add = (taskId: number, count: number) => {
    for (let i = 0; i < count; i++) {
      fence++;
      const verdict = { kind: "ended", outcome: "succeeded", result: null, error: null } as const;
      const settlement: Settlement = {
        runId: fence,
        fence,
        attempt: 1,
        taskId,
        linked: false,
        startedMs: 0,
        endedMs: 0,
        verdict,
      };
      verdicts.add(settlement);
    }
  };
  return { verdicts, sent, acknowledged, add };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

it("a verdict does not wait for thousands of another task", async () => {
  const { verdicts, sent, acknowledged, add } = batcher();
  add(1, 2_500);
  await turn();
  expect(sent.map(({ tasks, fences }) => [tasks, fences.length])).toEqual([[[1], 2_000]]);
  add(2, 1);
  add(1, 1);
  await turn();
  expect(sent.map(({ tasks, fences }) => [tasks, fences.length])).toEqual([
    [[1], 2_000],
    [[2], 1],
  ]);
  sent[1]?.answer();
  await turn();
  expect(acknowledged).toEqual([2_501]);
  // While the large statement is under way, every further verdict of another task is sent in its turn, those of its own task wait.
  add(3, 2);
  await turn();
  expect(sent[2]?.fences).toEqual([2_503, 2_504]);
  sent[0]?.answer();
  sent[2]?.answer();
  await turn();
  expect([sent[3]?.tasks, sent[3]?.fences.length]).toEqual([[1], 501]);
  sent[3]?.answer();
  await verdicts.empty();
  expect(acknowledged.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 2_504 }, (_, i) => i + 1));
});

it("verdicts that wait when a large statement begins are sent beside it, and none of them twice", async () => {
  const { verdicts, sent, acknowledged, add } = batcher();
  add(1, 2_000);
  add(2, 1);
  add(1, 300);
  await turn();
  expect(sent.map(({ tasks, fences }) => [tasks, fences.length])).toEqual([
    [[1], 2_000],
    [[2], 1],
  ]);
  sent[0]?.answer();
  await turn();
  expect(sent[2]?.fences.length).toBe(300);
  add(2, 1);
  await turn();
  // The verdict before it of task 2 has not been answered yet.
  expect(sent.length).toBe(3);
  sent[1]?.answer();
  await turn();
  expect(sent[3]?.fences).toEqual([2_302]);
  sent[2]?.answer();
  sent[3]?.answer();
  await verdicts.empty();
  expect(acknowledged.length).toBe(2_302);
});

it("a few verdicts of several tasks share one statement after the other", async () => {
  const { verdicts, sent, add } = batcher();
  add(1, 100);
  await turn();
  add(2, 5);
  await turn();
  expect(sent.length).toBe(1);
  sent[0]?.answer();
  await turn();
  expect([sent[1]?.tasks, sent[1]?.fences.length]).toEqual([[2], 5]);
  sent[1]?.answer();
  await verdicts.empty();
});
