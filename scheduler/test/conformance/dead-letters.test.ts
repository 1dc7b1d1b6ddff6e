import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import type { RunInput } from "../../src/run/flow.ts";
import type { OperationFilter, OperationKind, OperationRequest } from "../../src/run/operations.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import {
  change,
  failing,
  onward,
  openStage,
  type Stage,
  settlement,
  succeededVerdict,
} from "../support/store-stage.ts";

describe.each(everyPostgres())("dead letters on $title", (server) => {
  let stage: Stage;
  let session: number;
  let tokens = 0;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  /** Makes one run of the task fail for each message, in this order. @returns the ids of the runs */
  async function fail(task: TaskRecord, messages: string[], write = {}, endedMs = stage.nowMs): Promise<number[]> {
    await stage.store.runs.enqueue(
      messages.map(() => stage.write(task, write)),
      stage.nowMs,
    );
    const runs = await stage.claim(session, [task]);
    const batch = runs.map((run, i) => settlement(run, failing(messages[i] as string, "E"), endedMs));
    expect(await stage.store.claims.settle(session, batch, endedMs)).toEqual(new Set());
    return runs.map(({ runId }) => runId);
  }
  const request = (kind: OperationKind, filter: OperationRequest["filter"]): OperationRequest => ({
    kind,
    filter,
    author: "test",
    reason: "",
  });
  const begin = (kind: OperationKind, filter: OperationRequest["filter"], nowMs = stage.nowMs + 1_000) =>
    stage.store.operations.begin(request(kind, filter), `token ${++tokens}`, nowMs);
  const groupsOf = async (filter: OperationFilter) => (await stage.store.deadLetters.groups(filter)).groups;

  async function carryOut(id: number, store = stage.store) {
    while ((await store.operations.step(stage.nowMs + 1_000, id)).stepped !== null);
    return store.operations.find(id);
  }

  it("are the runs that failed for good, grouped by reason, counted exactly", async () => {
    const a = await stage.task("grouped-a", { group: "grouped-a" });
    const b = await stage.task("grouped-b", { group: "grouped-b" });
    const first = await fail(a, ["order 1 refused", "order 22 refused", "disk full"]);
    const second = await fail(b, ["order 333 refused"], {}, stage.nowMs + 5);
    const groups = await groupsOf({ matching: "grouped-*" });
    expect(groups).toHaveLength(2);
    expect(groups[0]).toMatchObject({
      letters: 3,
      tasks: ["grouped-a", "grouped-b"],
      reason: { code: "E", words: "order # refused" },
      firstMs: stage.nowMs,
      lastMs: stage.nowMs + 5,
      lastRunId: second[0],
    });
    expect(groups[1]).toMatchObject({ letters: 1, reason: { code: "E", words: "disk full" } });
    const of = { fingerprint: groups[0]!.fingerprint };
    expect((await stage.store.deadLetters.letters(of, 10)).map(({ runId }) => runId)).toEqual([
      second[0],
      first[1],
      first[0],
    ]);
    expect(await groupsOf({ matching: "grouped-*", untilMs: stage.nowMs - 1 })).toEqual([]);
    expect(await groupsOf({ group: "grouped-b" })).toEqual([expect.objectContaining({ letters: 1 })]);
  });

  it("list the thousand most frequent reasons, and a hundred tasks of each, with the counts of all", async () => {
    const word = (n: number) =>
      String.fromCharCode(...[n / 676, (n / 26) % 26, n % 26].map((at) => 97 + Math.floor(at)));
    const various = await stage.task("various", { group: "various" });
    const causes = Array.from({ length: 1_002 }, (_, n) => `cause ${word(n)}`);
    await fail(various, ["often", "often", ...causes.slice(500)]);
    await fail(various, causes.slice(0, 500));
    const many = Array.from({ length: 102 }, (_, n) => `alike-${word(n)}`);
    for (const name of many) await fail(await stage.task(name, { group: "alike" }), ["no disk"]);
    const { groups, total } = await stage.store.deadLetters.groups({ group: "various" });
    expect([groups.length, groups[0]?.letters, total]).toEqual([1_000, 2, { groups: 1_003, letters: 1_004 }]);
    const listed = new Set(groups.map(({ fingerprint }) => fingerprint));
    const letters = await stage.store.deadLetters.letters({ group: "various" }, 2_000);
    const rare = letters.find(({ fingerprint }) => !listed.has(fingerprint))?.fingerprint as string;
    expect(await groupsOf({ fingerprint: rare })).toMatchObject([{ letters: 1, tasks: ["various"] }]);
    expect(await groupsOf({ group: "alike" })).toMatchObject([
      { letters: 102, taskCount: 102, tasks: many.slice(0, 100) },
    ]);
  });

  it("do not include cancelled, succeeded and retrying runs", async () => {
    const task = await stage.task("not-dead", { group: "not-dead" });
    await stage.store.runs.enqueue([stage.write(task), stage.write(task), stage.write(task)], stage.nowMs);
    const runs = await stage.claim(session, [task]);
    const verdicts: Verdict[] = [
      { kind: "ended", outcome: "succeeded", result: null, error: null },
      { kind: "ended", outcome: "cancelled", result: null, error: null },
      { kind: "retry", dueMs: stage.nowMs + 60_000, error: '{"message":"x"}' },
    ];
    const batch = runs.map((run, i) => settlement(run, verdicts[i] as Verdict, stage.nowMs));
    await stage.store.claims.settle(session, batch, stage.nowMs);
    expect(await groupsOf({ task: "not-dead" })).toEqual([]);
  });

  it("include a run lost with its worker, and a run of a task with a concurrency limit", async () => {
    const task = await stage.task("lost", { group: "lost", grace: 0, onWorkerLost: "fail", overlap: "queue" });
    const run = await stage.enqueue(task);
    const worker = await stage.session("worker");
    await stage.claim(worker, [task]);
    await stage.store.sessions.end(worker, null, stage.nowMs, "silent");
    await stage.store.claims.reclaim(worker, 60_000, stage.nowMs, 10);
    const [group] = await groupsOf({ task: "lost" });
    expect(group).toMatchObject({ letters: 1, lastRunId: run, reason: { code: "WORKER_LOST" } });
  });

  it("are redriven once: a new run with payload, priority, key and slot, and links in both directions", async () => {
    const task = await stage.task("redriven", { group: "redriven" });
    const [old] = await fail(task, ["no"], { payload: '{"a": 1}', priority: 8, key: "k" });
    await stage.rows("update $s.run_history set slot_ms = 86400000 where id = $1", [old]);
    const operation = await carryOut(await begin("redrive", { task: "redriven" }));
    expect(operation).toMatchObject({ state: "done", total: 1, done: 1, failed: 0, passed: 0 });
    const [run] = await stage.store.runs.list({ task: "redriven", states: ["ready"], limit: 10 });
    expect(run).toMatchObject({ payload: { a: 1 }, priority: 8, key: "k", slotMs: 86_400_000, source: "manual" });
    expect(await stage.store.deadLetters.linksOf(old as number)).toMatchObject({
      letter: { state: "redriven", redrivenBy: run?.runId },
      redrives: null,
    });
    expect(await stage.store.deadLetters.linksOf(run?.runId as number)).toEqual({ letter: null, redrives: old });
    expect(await carryOut(await begin("redrive", { task: "redriven" }))).toMatchObject({ total: 0, done: 0 });
    expect(await groupsOf({ task: "redriven" })).toEqual([]);
  });

  it("run again once if redriven and rerun at the same time; the second operation counts them as passed over", async () => {
    const task = await stage.task("twice", { group: "twice" });
    const failed = await fail(task, ["a", "b", "c"]);
    const [redrive, rerun] = [await begin("redrive", { task: "twice" }), await begin("rerun", { task: "twice" })];
    const ended = await Promise.all([carryOut(redrive), carryOut(rerun)]);
    expect(ended.map(({ state, total }) => ({ state, total }))).toEqual(Array(2).fill({ state: "done", total: 3 }));
    expect(ended.map(({ done }) => done).sort()).toEqual([0, 3]);
    expect(ended.map(({ passed }) => passed).sort()).toEqual([0, 3]);
    const made = await stage.store.runs.list({ task: "twice", states: ["ready"], limit: 10 });
    expect(made).toHaveLength(failed.length);
    expect(await carryOut(await begin("rerun", { task: "twice" }))).toMatchObject({ total: 3, done: 0, passed: 3 });
  });

  it("are redriven, and rerun by number, with their original inputs; a child runs without its parent", async () => {
    const task = (name: string, options: TaskOptions = {}) => stage.task(`of-${name}`, { group: name, ...options });
    const [parent, part] = [await task("parent"), await task("part")];
    const joining = await task("joining");
    const branches = [await task("left", { after: "of-parent" }), await task("right", { after: "of-parent" })];
    const after = await task("after", { after: "of-parent" });
    const several = await task("several", { after: ["of-left", "of-right"] });
    const link = await task("link");
    const end = async (of: TaskRecord, verdict: Verdict) => {
      const [run] = (await stage.claim(session, [of])) as [ClaimedRun];
      await stage.store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
      return run.runId;
    };

    await stage.enqueue(parent);
    const [run] = (await stage.claim(session, [parent])) as [ClaimedRun];
    const parts = ["a", "b"].map((key) => ({ taskId: part.taskId, payload: null, key }));
    await stage.store.flow.spawn(run, parts, stage.nowMs);
    const join = onward({ kind: "join", taskId: joining.taskId, payload: null });
    await stage.store.claims.settle(session, [settlement(run, join, stage.nowMs)], stage.nowMs);
    const children = await stage.claim(session, [part]);
    const verdicts = children.map((child) => settlement(child, failing("no"), stage.nowMs));
    await stage.store.claims.settle(session, verdicts, stage.nowMs);
    for (const branch of branches) await end(branch, succeededVerdict);
    await stage.enqueue(link);
    await end(link, onward({ kind: "continue", payload: null, state: null }));
    const olds = new Map<string, number>();
    for (const of of [joining, after, several, link]) olds.set(of.name, await end(of, failing("no")));

    const inputsOf = (runId: number) => stage.store.flow.inputs({ runId });
    const had = new Map<string, RunInput[]>();
    for (const [name, old] of olds) had.set(name, await inputsOf(old));
    expect([...had.values()].map(({ length }) => length)).toEqual([2, 1, 2, 1]);
    expect(await carryOut(await begin("redrive", { matching: "of-*" }))).toMatchObject({ done: 6, failed: 0 });
    for (const [name, old] of olds) {
      const { letter } = await stage.store.deadLetters.linksOf(old);
      const made = [letter?.redrivenBy as number, (await stage.store.operations.rerun(old, change(stage.nowMs))).runId];
      for (const runId of made) expect(await inputsOf(runId), name).toEqual(had.get(name));
    }
    const again = await stage.rows("select parent_id from $s.run where task_id = $1", [part.taskId]);
    expect(again).toEqual([{ parent_id: null }, { parent_id: null }]);
  });

  it.each(["redrive", "rerun", "one"] as const)(
    "run again with their limit key, broadcast worker and root run (%s)",
    async (how) => {
      const task = (name: string, options: TaskOptions = {}) =>
        stage.task(`${how}-${name}`, { group: `${how}-${name}`, ...options });
      const again = async (of: TaskRecord, old: number) => {
        if (how === "one") await stage.store.operations.rerun(old, change(stage.nowMs));
        else await carryOut(await begin(how, { task: of.name }));
      };
      const rowsOf = ({ taskId }: TaskRecord) =>
        stage.rows("select state, limit_key, shard from $s.run where task_id = $1 order by state desc", [taskId]);

      const lanes = await task("lanes", { limit: { perKey: 1 } });
      const [limited] = await fail(lanes, ["no"], { key: "a", limitKey: "customer" });
      expect(await stage.store.runs.find(limited as number)).toMatchObject({ limitKey: "customer" });
      await stage.enqueue(lanes, { limitKey: "customer" });
      await again(lanes, limited as number);
      const [ready, held] = [2, 0].map((state) => ({ state, limit_key: "customer", shard: null }));
      expect(await rowsOf(lanes), "one at a time").toEqual([ready, held]);

      const parts = await task("parts", { route: { shards: 3 } });
      const whole = await stage.enqueue(parts);
      await stage.store.routes.split(whole, 3, null);
      await stage.rows("update $s.run set group_id = $2 where task_id = $1", [parts.taskId, parts.groupId]);
      const claimed = await stage.claim(session, [parts]);
      const [part] = claimed.filter(({ shard }) => shard?.[0] === 2) as [ClaimedRun];
      const ends = claimed.map((run) => settlement(run, run === part ? failing("no") : succeededVerdict, stage.nowMs));
      await stage.store.claims.settle(session, ends, stage.nowMs);
      expect(await stage.store.runs.find(part.runId)).toMatchObject({ shard: [2, 3] });
      await again(parts, part.runId);
      expect(await rowsOf(parts), "no part but this").toEqual([{ state: 2, limit_key: null, shard: [2, 3] }]);

      const root = await task("root");
      const branches = [await task("left", { after: root.name }), await task("right", { after: root.name })] as [
        TaskRecord,
        TaskRecord,
      ];
      const both = await task("both", { after: branches.map(({ name }) => name) });
      await stage.enqueue(root);
      const end = async (of: TaskRecord, verdict: Verdict) => {
        const [run] = (await stage.claim(session, [of], stage.nowMs + 2_000)) as [ClaimedRun];
        await stage.store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
        return run.runId;
      };
      await end(root, succeededVerdict);
      const left = await end(branches[0], failing("no"));
      await end(branches[1], succeededVerdict);
      await again(branches[0], left);
      await end(branches[0], succeededVerdict);
      expect(await rowsOf(both), "the other branch had waited for it").toHaveLength(1);
    },
  );

  it("are redriven once by two concurrent operators, step by step", async () => {
    const task = await stage.task("raced", { group: "raced" });
    const olds = await fail(
      task,
      Array.from({ length: 450 }, (_, i) => `no ${i}`),
    );
    const ids = [await begin("redrive", { task: "raced" }), await begin("redrive", { matching: "rac*" })];
    const stores = [stage.store, await stage.another()];
    const [a, b] = await Promise.all(ids.map((id, i) => carryOut(id, stores[i])));
    expect(a!.done + b!.done).toBe(450);
    for (const one of [a!, b!]) expect(one.done + one.passed + one.failed).toBe(one.total);
    const made = await stage.one(
      "select count(*) as n, count(distinct redriven_by) as d from $s.dead_letter where run_id = any($1)",
      [olds],
    );
    expect(made).toEqual({ n: 450, d: 450 });
    expect((await stage.one("select count(*) as n from $s.run where task_id = $1", [task.taskId])).n).toBe(450);
  });

  it("stay open while a live run has their key, or if their task or their history is gone", async () => {
    const task = await stage.task("kept", { group: "kept" });
    await fail(task, ["no"], { key: "k" });
    const live = await stage.enqueue(task, { key: "k" });
    const keyed = await carryOut(await begin("redrive", { task: "kept" }));
    expect(keyed).toMatchObject({
      state: "done",
      done: 0,
      failed: 1,
      error: expect.stringContaining(`run ${live} lives`),
    });
    await stage.store.runs.cancel(live, "", stage.nowMs);
    await stage.store.tasks.remove("kept", change(stage.nowMs));
    const gone = await carryOut(await begin("redrive", { matching: "kept" }));
    expect(gone).toMatchObject({ failed: 1, error: expect.stringContaining("task was removed") });
    expect(await carryOut(await begin("dismiss", { task: "kept" }))).toMatchObject({ done: 1, failed: 0 });

    const other = await stage.task("forgotten", { group: "forgotten" });
    await fail(other, ["no"]);
    await stage.rows("delete from $s.run_history where task_id = $1", [other.taskId]);
    expect((await groupsOf({ task: "forgotten" }))[0]?.reason).toBeNull();
    expect(await carryOut(await begin("redrive", { task: "forgotten" }))).toMatchObject({
      failed: 1,
      error: expect.stringContaining("retention"),
    });
  });

  it("can be dismissed singly, even if many ended at the same instant", async () => {
    const task = await stage.task("single", { group: "single" });
    const [first, second] = await fail(task, ["no", "no"]);
    expect(await stage.store.deadLetters.letters({ runId: second as number }, 10)).toMatchObject([{ runId: second }]);
    expect(await carryOut(await begin("dismiss", { runId: second as number }))).toMatchObject({ total: 1, done: 1 });
    expect(await stage.store.deadLetters.letters({ task: "single" }, 10)).toMatchObject([{ runId: first }]);
  });

  it("are closed by dismissing, and a redriven run that fails again is a new dead letter", async () => {
    const task = await stage.task("again", { group: "again" });
    await fail(task, ["no", "other"]);
    const [group] = await groupsOf({ task: "again" });
    const dismissed = await carryOut(await begin("dismiss", { fingerprint: group!.fingerprint, task: "again" }));
    expect(dismissed).toMatchObject({ done: 1 });
    const redrive = await begin("redrive", { task: "again" });
    await stage.store.operations.step(stage.nowMs + 1_000, redrive);
    const [run] = await stage.claim(session, [task], stage.nowMs + 2_000);
    // The run fails again before the next step of the operation, with an end time before the step because the worker's clock is behind.
    await stage.store.claims.settle(session, [settlement(run!, failing("no"), stage.nowMs - 1)], stage.nowMs);
    expect(await carryOut(redrive)).toMatchObject({ state: "done", done: 1 });
    expect(await groupsOf({ task: "again" })).toEqual([expect.objectContaining({ letters: 1, lastRunId: run!.runId })]);
  });

  it("wait for a slot like any other run if their task has a concurrency limit", async () => {
    const task = await stage.task("placed", { group: "placed", overlap: "queue" });
    await fail(task, ["no"]);
    await fail(task, ["no"]);
    await carryOut(await begin("redrive", { task: "placed" }));
    const states = (await stage.store.runs.list({ task: "placed", states: ["ready", "held"], limit: 10 })).map(
      ({ state }) => state,
    );
    expect(states.sort()).toEqual(["held", "ready"]);
  });

  it("are counted by the index of open dead letters, independently of other rows", async () => {
    const { plan } = await stage.one<{ plan: string }>(
      `select string_agg(x.filter, ' ') as plan from (
         select pg_get_indexdef(indexrelid) as filter from pg_index where indrelid = '$s.dead_letter'::regclass) x`,
    );
    expect(plan).toMatch(/\(ended_ms, run_id\) INCLUDE \(task_id, fingerprint\) WHERE \(state = 0\)/);
  });
});
