import { expect, test } from "vitest";
import type { Finding } from "../../alarms/alarms.ts";
import { CarillonError } from "../../base/errors.ts";
import { LateStarts, type LateStartsOptions } from "./late-starts.ts";

/** @param answers the store's results of `lateFrom`, in order: the limit in ms, null, or "away" for an unreachable store */
function stage(answers: (number | null | "away")[]) {
  const reported: Finding[][] = [];
  let [mono, asked] = [1e6, 0];
  let pulse = () => undefined as unknown;
  const alarms = {
    lateFrom: async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)];
      if (answer === "away") throw new CarillonError("STORE_UNREACHABLE", "away");
      return answer;
    },
    report: async (findings: Finding[]) => void reported.push(findings),
  };
  const late = new LateStarts({
    store: { alarms },
    clock: { monotonic: () => mono },
    storeClock: { now: () => 1_000 },
    membership: { onPulse: (told: typeof pulse) => (pulse = told) },
    log: {},
  } as unknown as LateStartsOptions);
  const beat = async (passesMs = 10_000) => {
    mono += passesMs;
    pulse();
    await new Promise(setImmediate);
  };
  return { late, beat, reported, asked: () => asked };
}

test("late starts that could not be reported are reported with the next ones, one finding per task", async () => {
  const { late, beat, reported } = stage(["away", 10_000]);
  late.add("a", 1, 100_000);
  late.add("a", 2, 200_000);
  await beat();
  expect(reported).toEqual([]);
  late.add("a", 3, 150_000);
  late.add("b", 4, 10_000);
  await beat();
  const finding = { rule: "late", subject: "a", count: 3, text: "started up to 200 s late", runId: 2 };
  expect(reported).toEqual([[finding]]);
  await late.stop();
});

test("late starts are dropped while no process evaluates them, and reported from then on", async () => {
  const { late, beat, reported } = stage([null, 1_000]);
  late.add("a", 1, 100_000);
  await beat();
  late.add("a", 2, 2_000);
  await beat();
  expect(reported).toMatchObject([[{ count: 1, runId: 2 }]]);
});

test("a process without late starts sends no query, and one with many late starts sends few", async () => {
  const { late, beat, asked } = stage([10_000]);
  late.add("a", 1, 20);
  await beat();
  expect(asked()).toBe(0);
  late.add("a", 1, 20_000);
  await beat();
  late.add("a", 1, 20_000);
  await beat(100);
  expect(asked()).toBe(1);
});

test("a process that stops reports its pending late starts", async () => {
  const { late, reported } = stage([10_000]);
  late.add("a", 1, 20_000);
  await late.stop();
  expect(reported).toMatchObject([[{ subject: "a", count: 1 }]]);
});

test("with very many tasks, those with the latest starts are reported", async () => {
  const { late, reported } = stage([1_000]);
  for (let i = 1; i <= 150; i++) late.add(`task-${i}`, i, 1_000 + i);
  await late.stop();
  expect(reported[0]?.map(({ runId }) => runId)).toEqual(Array.from({ length: 100 }, (_, i) => 150 - i));
});
