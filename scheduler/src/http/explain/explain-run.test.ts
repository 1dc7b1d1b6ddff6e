import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { defineTask, type TaskOptions } from "../../task/task.ts";
import { type Facts, reasonsOf } from "./explain-run.ts";

const dueMs = Date.parse("2030-01-01T00:00:00Z");
const after = (ms: number) => new Date(dueMs + ms).toISOString();

type Run = Facts["run"];
type Task = NonNullable<Facts["task"]>;
type Worker = NonNullable<Facts["workers"]>[number];

const run = (given: Partial<Run> = {}): Run => ({
  run: 7,
  task: "order",
  version: 1,
  state: "ready",
  source: "slot",
  priority: 5,
  key: null,
  slot: after(0),
  due: after(0),
  created: after(-10_000),
  claimed: null,
  started: null,
  ended: null,
  lateMs: null,
  ownWaitMs: null,
  tookMs: null,
  attempt: 1,
  fence: null,
  node: null,
  release: null,
  addressee: null,
  limitKey: null,
  overrides: null,
  expires: null,
  labels: {},
  shard: null,
  error: null,
  payload: null,
  progress: null,
  result: null,
  attempts: [],
  relatives: [],
  late: [],
  letter: null,
  redrives: null,
  ...given,
});

const task = (options: TaskOptions = {}, given: Partial<Task> = {}) => {
  const definition = defineTask("order", options);
  const { group, labels = {} } = definition;
  return { name: "order", of: null, group, labels, paused: null, definition, ...given } as unknown as Task;
};

const worker = (given: Partial<Worker> = {}) =>
  ({
    node: "w1",
    groups: ["default"],
    labels: {},
    capacity: 10,
    held: 0,
    tasks: null,
    silent: false,
    stillMs: null,
    draining: false,
    seen: after(0),
    ...given,
  }) as Worker;

const facts = (given: Partial<Facts> = {}): Facts => ({
  run: run(),
  task: task(),
  leader: "n1",
  workers: [worker()],
  group: null,
  holders: [],
  nowMs: dueMs + 60_000,
  ...given,
});

const codes = (given: Partial<Facts>) => reasonsOf(facts(given)).map(({ code }) => code);

it("documents every code", () => {
  const here = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const source = here("./explain-run.ts");
  const made = [...source.matchAll(/(?:reason\(|add\(|^ +\[)\s*"([a-z-]+)",/gm)].map(([, code]) => code as string);
  const [, section = ""] = /## Reasons\n([\s\S]*?)\n## /.exec(here("../../../../docs/reference/mcp.md")) ?? [];
  const listed = [...section.matchAll(/`([a-z-]+)`/g)].map(([, code]) => code as string);
  expect([...new Set([...made, "skipped", "cancelled"])].sort()).toEqual(listed.sort());
});

describe("the reasons for a waiting run", () => {
  const group = { name: "default", tasks: 1, workers: 1, limit: 4, claimed: 4, waiting: 9, changed: null };

  it.each<[string, Partial<Facts>, string[]]>([
    ["before its time", { nowMs: dueMs - 5 }, ["not-due"]],
    ["a removed task", { task: null }, ["task-removed"]],
    ["a worker that may claim it", {}, ["claimable"]],
    ["workers that may not be seen", { workers: null }, ["workers-hidden"]],
    ["no worker", { workers: [] }, ["no-worker"]],
    ["silent workers", { workers: [worker({ silent: true })] }, ["workers-silent"]],
    ["drained workers", { workers: [worker({ silent: true }), worker({ draining: true })] }, ["workers-draining"]],
    ["an addressee that is away", { run: run({ addressee: "w2" }) }, ["addressee-away"]],
    ["workers of other tasks", { workers: [worker({ tasks: ["mail"] })] }, ["no-handler"]],
    ["workers without a label", { task: task({ labels: { zone: "eu" } }) }, ["no-labels"]],
    ["busy workers", { workers: [worker({ held: 10 })] }, ["workers-busy"]],
    ["one busy and one free", { workers: [worker({ held: 10 }), worker({ node: "w2" })] }, ["claimable"]],
    ["a group at its limit", { group }, ["group-limit"]],
    ["a group at its limit without a worker", { group, workers: [] }, ["group-limit", "no-worker"]],
    ["a limit of each worker", { task: task({ limit: { perWorker: 2 } }) }, ["limit-worker"]],
    ["a paused task", { run: run({ state: "paused" }) }, ["task-paused"]],
    ["a run under way", { run: run({ state: "held" }), task: task({ overlap: "queue" }) }, ["overlap"]],
    [
      "its time, and a run under way then",
      { run: run({ state: "held" }), task: task({ overlap: "queue" }), nowMs: dueMs - 5 },
      ["not-due", "overlap"],
    ],
    ["a key", { run: run({ state: "held" }), task: task({ limit: { perKey: 1 } }) }, ["limit-key"]],
    [
      "a worker's limit or a rate, and no leader",
      {
        run: run({ state: "held" }),
        task: task({ limit: { perWorker: 2 }, rate: { limit: 1, per: "1m" } }),
        leader: null,
      },
      ["limit-worker", "rate", "leaderless"],
    ],
    ["something that the API does not show", { run: run({ state: "held" }), task: null }, ["held"]],
    ["a decision", { run: run({ state: "undecided" }) }, ["worker-lost"]],
  ])("names %s", (_, given, expected) => {
    expect(codes(given)).toEqual(expected);
  });

  it("names the runs that hold the limit for which it waits, without itself", () => {
    const listed = (number: number, key: string | null = null): Facts["holders"][number] => {
      const { payload, progress, result, attempts, relatives, late, letter, redrives, ...summary } = run({ key });
      return { ...summary, run: number, node: "w1" };
    };
    const by = (given: Partial<Facts>) => reasonsOf(facts(given)).map(({ shown }) => shown.by);
    const named = (...runs: number[]) => runs.map((run) => ({ run, task: "order", node: "w1" }));
    const held = run({ state: "held", key: "eu" });
    const holders = [1, 2, 3, 4, 5, 6, 7].map((number) => listed(number, number % 2 ? "eu" : "us"));
    expect(by({ run: held, task: task({ overlap: "queue" }), holders })).toEqual([named(1, 2, 3, 4, 5)]);
    expect(by({ run: held, task: task({ limit: { perKey: 1 } }), holders })).toEqual([named(1, 3, 5)]);
    expect(by({ run: held, holders: [listed(2), listed(7)] })).toEqual([named(2)]);
    expect(by({ group, holders: [listed(2)] })).toEqual([named(2)]);
  });

  it("treats the handler of a schedule as that of its task", () => {
    const scheduled = task({}, { name: "order:weekly", of: "order" });
    expect(codes({ task: scheduled, workers: [worker({ tasks: ["order"] })] })).toEqual(["claimable"]);
  });
});

describe("the reasons for a claimed run", () => {
  const claimed = { state: "claimed", claimed: after(0), node: "w1", fence: 1 } as const;

  it.each<[string, Partial<Facts>, string[]]>([
    ["no start", { run: run(claimed) }, ["not-started"]],
    ["its work", { run: run({ ...claimed, started: after(20) }) }, ["running"]],
    [
      "a silent worker that stands still",
      { run: run(claimed), workers: [worker({ silent: true, stillMs: 9_000 })] },
      ["not-started", "worker-silent", "worker-stands-still"],
    ],
    ["a worker that is gone", { run: run(claimed), workers: [] }, ["not-started", "worker-gone"]],
    [
      "a late claim and a late start",
      { run: run({ ...claimed, claimed: after(5_000), started: after(9_000) }) },
      ["running", "claimed-late", "started-late"],
    ],
    [
      "a wait for its own limit",
      { run: run({ ...claimed, claimed: after(5_000), started: after(5_010), ownWaitMs: 4_900 }) },
      ["running", "own-wait"],
    ],
  ])("names %s", (_, given, expected) => {
    expect(codes(given)).toEqual(expected);
  });
});

describe("the reasons for an ended run", () => {
  const ended = { state: "succeeded", claimed: after(0), started: after(5), ended: after(900) } as const;

  it("are empty if the run was on time", () => {
    expect(codes({ run: run(ended) })).toEqual([]);
  });

  it("distinguish late planning from a late claim", () => {
    const late = { created: after(30_000), claimed: after(30_500), started: after(30_600), ended: after(31_000) };
    expect(codes({ run: run({ ...ended, ...late }) })).toEqual(["planned-late"]);
    expect(codes({ run: run({ ...ended, ...late, source: "enqueue" }) })).toEqual([]);
  });

  it("contain the error with the meaning of its code, the attempts and the dead letter", () => {
    const failed = run({
      ...ended,
      state: "failed",
      attempt: 2,
      error: { code: "TIMEOUT", message: "too long" },
      attempts: [
        {
          attempt: 1,
          fence: 1,
          node: "w1",
          claimed: null,
          started: null,
          ended: after(50),
          outcome: "failed",
          error: null,
        },
      ],
      letter: { fingerprint: "f", state: "redriven", redrivenBy: 9 },
    });
    const reasons = reasonsOf(facts({ run: failed, task: task({ retry: { attempts: 2 } }) }));
    expect(reasons.map(({ code }) => code)).toEqual(["failed", "dead-letter", "retried"]);
    expect(reasons[0]).toMatchObject({
      words: expect.stringMatching(/^Attempt 2 failed, and no other follows. Its task allows 2 attempts. .+/),
      shown: { error: { message: "too long" }, attempt: 2, attempts: 2 },
    });
  });

  it.each(["skipped", "cancelled"] as const)("contain that the run was %s", (state) => {
    expect(codes({ run: run({ ...ended, state }) })).toEqual([state]);
  });
});
