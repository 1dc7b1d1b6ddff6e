import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { every } from "../../scheduler/src/schedule/schedule.ts";
import { defineTask } from "../../scheduler/src/task/task.ts";
import type { Dump, History, Operation, Row } from "../src/history.ts";
import { account } from "../src/soak/account.ts";
import { withoutCause } from "../src/soak/deaths.ts";
import { faults, inTurn } from "../src/soak/faults.ts";
import { linesAsSvg } from "../src/soak/lines-chart.ts";
import { trendOf } from "../src/soak/slope.ts";
import { StartLog } from "../src/soak/start-log.ts";

it("computes a slope that single peaks do not affect", () => {
  const points = Array.from({ length: 200 }, (_, at) => ({
    hours: at / 100,
    value: at % 17 === 0 ? 10_000 : 50 + (3 * at) / 100,
  }));
  const { perHour, median, first } = trendOf(points);
  expect(perHour).toBeCloseTo(3, 1);
  expect([Math.round(median), first]).toEqual([53, 10_000]);
  expect(trendOf([{ hours: 0, value: 5 }]).perHour).toBe(0);
  expect(trendOf(points.map(({ hours }) => ({ hours, value: Number.NaN }))).perHour).toBe(0);
});

it("draws the sampled values, and escapes text in the picture", () => {
  const lines = [{ name: "a<b", points: [[0, 1] as const, [2, Number.NaN] as const, [4, 3] as const] }];
  const svg = linesAsSvg([{ title: "rss & more", told: "3 an hour", lines }], [1, 2], "two faults");
  expect(svg).toMatch(/rss &amp; more/);
  expect(svg.match(/class="mark"/g)).toHaveLength(2);
  expect(svg).not.toMatch(/NaN|a<b/);
});

it("plays every fault once before it repeats any", () => {
  const turn = inTurn(() => 0.3);
  const names = Array.from({ length: faults.length }, () => turn.next().value.name);
  expect(new Set(names)).toEqual(new Set(faults.map(({ name }) => name)));
});

it.each(["simulation", "faults"])("the processes of %s find the thread that stands in for their event loop", (part) => {
  const compiled = new URL(`../../${part}/dist/scheduler/src/library/`, import.meta.url);
  expect(["stand-in.js", "stand-in-thread.js"].filter((file) => !existsSync(new URL(file, compiled)))).toEqual([]);
});

it("finds processes that were taken for dead although no fault had disturbed them", () => {
  const happenings = [
    { atMs: 1_000, what: "atlas is killed" },
    { atMs: 20_000, what: "bora stands still for 4000 ms" },
    { atMs: 40_000, what: "cygnus is cut off from the store for 3000 ms" },
    { atMs: 60_000, what: "atlas is stopped in order" },
  ];
  const death = (node: string, endedMs: number) => ({
    node,
    endedMs,
    remote: node === "worker-a",
    why: "silent for 1500 ms",
  });
  const found = (...deaths: ReturnType<typeof death>[]) =>
    withoutCause(deaths, happenings, 1_500).map(({ atMs }) => atMs);
  expect(found(death("atlas", 2_600), death("bora", 21_600), death("bora", 26_000), death("cygnus", 42_000))).toEqual(
    [],
  );
  expect(found(death("atlas", 900))).toEqual([900]);
  expect(found(death("bora", 2_600), death("bora", 29_100))).toEqual([2_600, 29_100]);
  expect(found(death("atlas", 61_000), death("cygnus", 21_600))).toEqual([61_000, 21_600]);
  expect(found(death("worker-a", 21_600), death("worker-a", 42_000))).toEqual([42_000]);
});

it("reads the handlers' start and end records, also if a line is incomplete", () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-soak-test-"));
  const log = new StartLog(join(folder, "starts"));
  try {
    const start = {
      n: "start",
      node: "a",
      pid: 1,
      run: 7,
      task: "tick",
      attempt: 1,
      fence: 9,
      slot: 1_000,
      due: 1_000,
      at: 1_004,
    };
    const text = `${JSON.stringify(start)}\n${JSON.stringify({ n: "end", fence: 9, at: 1_010, how: "returned", why: null })}\n`;
    writeFileSync(log.path, text.slice(0, 60));
    log.read();
    expect(log.executions).toEqual([]);
    writeFileSync(log.path, text);
    expect(log.takeLateness()).toEqual([4]);
    expect(log.executions).toMatchObject([{ run: 7, fence: 9, startMs: 1_004, endMs: 1_010, how: "returned" }]);
  } finally {
    log.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

const t0 = 1_900_000_000_000;
const endMs = t0 + 120_000;
const slots = Array.from({ length: 119 }, (_, at) => t0 + (at + 1) * 1_000);

/** Returns the history of two minutes with one task, in which nothing went wrong. */
function goodHistory(): History & { dump: { [Table in keyof Dump]: Row[] } } {
  const definition = defineTask("tick", { schedule: every("1s") });
  const saved: Operation = {
    id: "op1",
    kind: "save",
    node: "soak",
    task: "tick",
    invokedMs: t0 - 10,
    invokedStoreMs: t0 - 10,
    endedMs: t0,
    endedStoreMs: t0,
    outcome: "ok",
    definition,
    answer: "true",
  };
  const asked: Operation = {
    id: "op2",
    kind: "enqueue",
    node: "soak",
    task: "tick",
    invokedMs: t0,
    invokedStoreMs: t0,
    endedMs: t0 + 5,
    endedStoreMs: t0 + 5,
    outcome: "ok",
    dueMs: t0,
    key: "op2",
    run: 1_000,
  };
  const runs = [
    ...slots.map((slot, at) => ({ id: at + 1, slot, due: slot, source: 1 })),
    { id: 1_000, slot: null, due: t0, source: 2 },
  ];
  return {
    endMs,
    endStoreMs: endMs,
    healMs: t0,
    recoveredMs: t0 + 60_000,
    epochMs: 0,
    clockErrorMs: 100,
    slackMs: 0,
    sessionTimeoutMs: 6_000,
    nodes: ["a"],
    concurrency: 100,
    coordination: false,
    applied: [],
    happenings: [],
    blocked: 0,
    operations: [saved, asked],
    executions: runs.map(({ id, slot, due }) => ({
      node: "a",
      life: 1,
      run: id,
      task: "tick",
      attempt: 1,
      fence: id,
      slotMs: slot,
      dueMs: due,
      startMs: due + 3,
      startStoreMs: due + 3,
      believedMs: Number.POSITIVE_INFINITY,
      endMs: due + 5,
      how: "returned",
      stoppedWhy: null,
      deaf: false,
    })),
    dump: {
      task: [{ id: 1, name: "tick", version: 1, paused_ms: null, deleted_ms: null, definition, changed_ms: t0 }],
      task_version: [{ task_id: 1, version: 1, definition, author: "x", reason: "op1", changed_ms: t0 }],
      plan: [{ task_id: 1, version: 1, next_slot_ms: endMs + 15_000, paused: false }],
      slot: slots.map((slot, at) => ({
        task_id: 1,
        slot_ms: slot,
        outcome: 1,
        run_id: at + 1,
        reason: null,
        accepted_ms: slot,
      })),
      run_history: runs.map(({ id, slot, due, source }) => ({
        id,
        task_id: 1,
        slot_ms: slot,
        due_ms: due,
        fence: id,
        session_id: 1,
        attempt: 1,
        outcome: 0,
        source,
        key: null,
        started_ms: due + 3,
        ended_ms: due + 5,
      })),
      session: [{ id: 1, node: "a", role: "both", started_ms: t0, ended_ms: null, ended_why: null, timeout_ms: 6_000 }],
      leadership: [{ term: 1, session_id: 1 }],
      tally: [{ task_id: 1, succeeded: 120, failed: 0, cancelled: 0, skipped: 0, missed: 0, retried: 0 }],
      slot_range: [],
      run: [],
      attempt: [],
      late_result: [],
      term: [],
      operation: [],
      audit: [],
      dead_letter: [],
    },
  };
}

it("finds no violation in a correct history", () => {
  expect(account(goodHistory())).toMatchObject({
    violations: [],
    slotsDue: 121,
    runs: 120,
    enqueued: 1,
    attemptsLost: 0,
  });
});

it.each<[string, RegExp, (history: ReturnType<typeof goodHistory>) => void]>([
  ["a slot that nobody accounts for", /^2, 5/, ({ dump }) => void dump.slot.splice(40, 1)],
  [
    "a slot that is run twice",
    /^1/,
    ({ dump }) => void dump.run_history.push({ ...dump.run_history[3], id: 5_000, fence: 5_000 }),
  ],
  ["an acknowledged run that is not there", /^14/, ({ dump }) => void dump.run_history.pop()],
  [
    "a success that no handler came to",
    /^8/,
    ({ executions }) => Object.assign(executions[7] ?? {}, { how: null, endMs: null }),
  ],
  ["a start before its time", /^4, 6/, ({ executions }) => Object.assign(executions[7] ?? {}, { startStoreMs: t0 })],
  ["counters that are not the rows", /^15/, ({ dump }) => Object.assign(dump.tally[0] ?? {}, { succeeded: 119 })],
  ["a node that did not come back", /^16/, ({ dump }) => Object.assign(dump.session[0] ?? {}, { ended_ms: endMs })],
])("finds %s", (_, invariant, spoil) => {
  const history = goodHistory();
  spoil(history);
  expect(account(history).violations.map((violation) => violation.invariant)).toContainEqual(
    expect.stringMatching(invariant),
  );
});
