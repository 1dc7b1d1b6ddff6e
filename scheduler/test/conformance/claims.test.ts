import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

describe.each(everyPostgres())("claims on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  let groups = 0;
  /** Creates a task in a new group, so that one test does not claim another's runs. */
  const alone = (name: string, options = {}) => stage.task(name, { group: `g${++groups}`, ...options });
  it("assign each run to one of many workers", async () => {
    const task = await alone("shared");
    await stage.store.runs.enqueue(
      Array.from({ length: 3_000 }, () => stage.write(task)),
      stage.nowMs,
    );
    const workers = await Promise.all(
      Array.from({ length: 6 }, async () => ({
        store: await stage.another({ connectionsMax: 2 }),
        session: await stage.session("worker"),
      })),
    );
    const claimed = await Promise.all(
      workers.map(async ({ store, session }) => {
        const mine: ClaimedRun[] = [];
        for (;;) {
          const request = {
            sessionId: session,
            groupIds: [task.groupId],
            exceptTaskIds: [],
            untilMs: stage.nowMs,
            limit: 70,
            nowMs: stage.nowMs,
          };
          const { runs } = await store.claims.claim(request);
          if (runs.length === 0) return mine;
          mine.push(...runs);
        }
      }),
    );
    const all = claimed.flat();
    expect(all).toHaveLength(3_000);
    expect(new Set(all.map(({ runId }) => runId)).size).toBe(3_000);
    expect(new Set(all.map(({ fence }) => fence)).size, "a fence was given twice").toBe(3_000);
    for (const [i, { session }] of workers.entries()) {
      expect((await stage.store.claims.heldBy(session)).map(({ fence }) => fence).sort()).toEqual(
        (claimed[i] as ClaimedRun[]).map(({ fence }) => fence).sort(),
      );
    }
  });

  it("take runs of a higher priority first, in whichever of the worker's groups they are", async () => {
    const tasks = [await alone("left"), await alone("right"), await alone("third")];
    const session = await stage.session("worker");
    const priorities = [2, 7, 5, 9, 0, 3, 8];
    for (const [i, priority] of priorities.entries()) await stage.enqueue(tasks[i % 3] as TaskRecord, { priority });
    const claimed: (number | undefined)[] = [];
    while (claimed.length < priorities.length)
      claimed.push((await stage.claim(session, tasks, stage.nowMs, 1))[0]?.priority);
    expect(claimed).toEqual(priorities.toSorted((a, b) => b - a));
  });

  it("report how many runs could be claimed in the next period, and when the next one after it is due", async () => {
    const task = await alone("coming");
    const urgent = await stage.task("coming-urgent", { group: task.definition.group, priority: 9 });
    const t = stage.nowMs;
    const at = (ms: number, of = task) => ({ ...stage.write(of), dueMs: t + ms });
    await stage.store.runs.enqueue([at(-5), at(100), at(600), at(700, urgent), at(2_100), at(9_000)], t);
    const coming = (aheadMs: number, most = 100) =>
      stage.store.claims.coming({ groupIds: [task.groupId], nowMs: t, aheadMs, most });
    expect(await coming(1_000)).toEqual({ counts: [2, 0, 2, 0], nextMs: t + 2_100 });
    expect(await coming(1_000, 2), "of a priority").toEqual({ counts: [2, 0, 1, 0], nextMs: t + 2_100 });
    expect((await coming(8_000)).nextMs).toBe(t + 9_000);
    expect(await coming(10_000)).toMatchObject({ nextMs: null });
    const request = { sessionId: await stage.session("worker"), groupIds: [task.groupId], exceptTaskIds: [], nowMs: t };
    await stage.store.claims.claim({ ...request, untilMs: t + 650, limit: 100, free: 100 });
    expect(await coming(1_000), "what is claimed does not come").toEqual({ counts: [0, 0, 1, 0], nextMs: t + 2_100 });
  });

  it("skip a run that another transaction is writing, instead of waiting for it", async () => {
    const task = await alone("passed-over");
    const session = await stage.session("worker");
    const [busy, free] = [await stage.enqueue(task, { dueMs: stage.nowMs - 5 }), await stage.enqueue(task)];
    const client = await stage.sql.connect();
    try {
      await client.query("begin");
      await client.query(`select from ${stage.schema}.run where id = $1 for update`, [busy]);
      expect((await stage.claim(session, [task])).map(({ runId }) => runId)).toEqual([free]);
      await client.query("rollback");
    } finally {
      client.release();
    }
    expect((await stage.claim(session, [task])).map(({ runId }) => runId)).toEqual([busy]);
  });

  it("raise the fence with every claim of a run", async () => {
    const task = await alone("fences");
    const session = await stage.session("worker");
    const runId = await stage.enqueue(task);
    let last = 0;
    for (let attempt = 1; attempt <= 5; attempt++) {
      const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
      expect(run).toMatchObject({ runId, attempt });
      expect(run.fence).toBeGreaterThan(last);
      last = run.fence;
      await stage.store.claims.settle(
        session,
        [settlement(run, { kind: "retry", dueMs: stage.nowMs, error: null }, stage.nowMs)],
        stage.nowMs,
      );
    }
  });

  it("take higher priorities first, and the earliest due within one priority", async () => {
    const task = await alone("priorities");
    const session = await stage.session("worker");
    const expected: number[] = [];
    const order = [
      { priority: 9, dueMs: stage.nowMs - 1 },
      { priority: 9, dueMs: stage.nowMs },
      { priority: 5, dueMs: stage.nowMs - 100 },
      { priority: 0, dueMs: stage.nowMs - 9_999 },
    ];
    for (const write of order.toReversed()) expected.unshift(await stage.enqueue(task, write));
    const taken: number[] = [];
    for (let i = 0; i < order.length; i++)
      taken.push(...(await stage.claim(session, [task], stage.nowMs, 1)).map(({ runId }) => runId));
    expect(taken).toEqual(expected);
  });

  it("take nothing due after the requested time, and return when to claim again", async () => {
    const task = await alone("due");
    const session = await stage.session("worker");
    await stage.enqueue(task, { dueMs: stage.nowMs + 501 });
    const soon = await stage.enqueue(task, { dueMs: stage.nowMs + 500 });
    const request = {
      sessionId: session,
      groupIds: [task.groupId],
      exceptTaskIds: [],
      untilMs: stage.nowMs + 499,
      limit: 10,
      nowMs: stage.nowMs,
    };
    const none = await stage.store.claims.claim(request);
    expect([none.runs, await none.nextDue()]).toEqual([[], stage.nowMs + 500]);
    const answer = await stage.store.claims.claim({ ...request, untilMs: stage.nowMs + 500 });
    expect(answer.runs.map(({ runId }) => runId)).toEqual([soon]);
    expect(await answer.nextDue()).toBe(stage.nowMs + 501);
    await stage.claim(session, [task], stage.nowMs + 501);
    const all = await stage.store.claims.claim({ ...request, untilMs: stage.nowMs + 9_999 });
    expect(await all.nextDue()).toBeNull();
  });

  it("leave tasks and groups that the worker cannot run", async () => {
    const mine = await stage.task("mine", { group: "both" });
    const not = await stage.task("not-mine", { group: "both" });
    const other = await alone("other-group");
    const session = await stage.session("worker");
    for (const task of [mine, not, other]) await stage.enqueue(task);
    const request = {
      sessionId: session,
      groupIds: [mine.groupId],
      exceptTaskIds: [not.taskId],
      untilMs: stage.nowMs,
      limit: 10,
      nowMs: stage.nowMs,
    };
    const { runs, nextDue } = await stage.store.claims.claim(request);
    expect(runs.map(({ taskId }) => taskId)).toEqual([mine.taskId]);
    expect(await nextDue()).toBeNull();
  });

  it("return nothing for an ended or unknown session", async () => {
    const task = await alone("ended-session");
    const session = await stage.session("worker");
    await stage.enqueue(task);
    await stage.store.sessions.end(session, null, stage.nowMs, "gone");
    expect(await stage.claim(session, [task])).toEqual([]);
    expect(await stage.claim(987_654, [task])).toEqual([]);
    expect(await stage.claim(await stage.session("worker"), [task])).toHaveLength(1);
  });

  it("set aside a run enqueued by a transaction older than its task's pause", async () => {
    const task = await alone("aside");
    const session = await stage.session("worker");
    const client = await stage.sql.connect();
    try {
      await client.query("begin");
      const { runId } = await stage.store.runs.enqueueIn(client, stage.write(task), stage.nowMs);
      await stage.store.tasks.pause("aside", change(stage.nowMs));
      await client.query("commit");
      expect(await stage.claim(session, [task])).toEqual([]);
      expect(await stage.store.runs.find(runId)).toMatchObject({ state: "paused", attempt: 0 });
      await stage.store.tasks.resume("aside", change(stage.nowMs));
      expect((await stage.claim(session, [task])).map((run) => run.runId)).toEqual([runId]);
    } finally {
      client.release();
    }
  });

  it("cancel a run enqueued by a transaction older than its task's removal", async () => {
    const task = await alone("removed-under");
    const session = await stage.session("worker");
    const client = await stage.sql.connect();
    try {
      await client.query("begin");
      const { runId } = await stage.store.runs.enqueueIn(client, stage.write(task), stage.nowMs);
      await stage.store.tasks.remove("removed-under", change(stage.nowMs));
      await client.query("commit");
      expect(await stage.claim(session, [task])).toEqual([]);
      expect(await stage.store.runs.find(runId)).toMatchObject({ state: "cancelled" });
    } finally {
      client.release();
    }
  });

  it("find the due run among a million future runs by the index", async () => {
    const task = await alone("million");
    const session = await stage.session("worker");
    await stage.rows(
      `insert into $s.run (id, due_ms, created_ms, task_id, group_id, version, state, priority, source)
       select nextval('$s.run_id'), $1::bigint + 3600000 + i, 0, $2, $3, 1, 2, i % 10, 2 from generate_series(1, 1000000) i`,
      [stage.nowMs, task.taskId, task.groupId],
    );
    await stage.rows("analyze $s.run");
    for (let i = 0; i < 3; i++) await stage.enqueue(task, { priority: i * 3 });
    for (let i = 0; i < 3; i++) expect(await stage.claim(session, [task], stage.nowMs, 1)).toHaveLength(1);

    await stage.enqueue(task);
    const { nowMs } = stage;
    const request = {
      sessionId: session,
      groupIds: [task.groupId],
      exceptTaskIds: [],
      untilMs: nowMs,
      limit: 100,
      nowMs,
    };
    const claims = await explained(async () => (await stage.store.claims.claim(request)).nextDue());
    expect(claims).toHaveLength(2);
    for (const { text, plan } of claims) {
      const nodes = nodesOf(plan);
      expect(
        nodes.some((node) => node["Index Name"] === "run_ready"),
        text,
      ).toBe(true);
      const scans = nodes.filter((node) => node["Node Type"] === "Seq Scan" && node["Relation Name"] === "run");
      expect(scans, `reads all runs: ${text}`).toEqual([]);
      const top = nodes[0] as PlanNode;
      expect((top["Shared Hit Blocks"] ?? 0) + (top["Shared Read Blocks"] ?? 0), text).toBeLessThan(300);
    }

    /** Returns the execution plans of the statements on the table `run` that `work` sends. */
    async function explained(work: () => Promise<unknown>): Promise<{ text: string; plan: PlanNode }[]> {
      const seen: { text: string; values: unknown[] }[] = [];
      const spy = vi.spyOn(pg.Client.prototype, "query");
      await work();
      for (const [query] of spy.mock.calls as unknown as [{ text?: string; values?: unknown[] }][]) {
        // Other statements, such as signals for earlier enqueues, are left out.
        if (query.text?.includes(".run ")) seen.push({ text: query.text, values: query.values ?? [] });
      }
      spy.mockRestore();
      await stage.enqueue(task);
      const plans: { text: string; plan: PlanNode }[] = [];
      for (const { text, values } of seen) {
        const [row] = await stage.rows<{ "QUERY PLAN": { Plan: PlanNode }[] }>(
          `explain (analyze, buffers, format json) ${text}`,
          values,
        );
        plans.push({ text, plan: (row as { "QUERY PLAN": [{ Plan: PlanNode }] })["QUERY PLAN"][0].Plan });
      }
      return plans;
    }
  });

  it("move a lost session's claims to the process's new session, with their fences", async () => {
    const task = await alone("adopted");
    const [old, next] = [await stage.session("worker"), await stage.session("worker")];
    for (let i = 0; i < 3; i++) await stage.enqueue(task);
    const held = await stage.claim(old, [task]);
    const [first] = held as [ClaimedRun];
    await stage.store.claims.settle(old, [settlement(first, succeededVerdict, stage.nowMs)], stage.nowMs);
    await stage.store.sessions.end(old, null, stage.nowMs, "silent");
    const moved = await stage.store.claims.adopt(old, next);
    expect(moved.map(({ fence }) => fence).sort()).toEqual(
      held
        .slice(1)
        .map(({ fence }) => fence)
        .sort(),
    );
    expect(moved.map(({ claimedMs }) => claimedMs)).toEqual(moved.map(() => Math.round(stage.nowMs)));
    expect(await stage.store.claims.heldBy(old)).toEqual([]);
    expect(await stage.store.claims.reclaim(old, 60_000, stage.nowMs, 100)).toEqual([]);
    expect(
      await stage.store.claims.settle(
        next,
        moved.map((run) => settlement(run, succeededVerdict, stage.nowMs)),
        stage.nowMs,
      ),
    ).toEqual(new Set());
  });

  describe("a run reclaimed from a dead worker", () => {
    async function lost(
      name: string,
      options = {},
      write = {},
    ): Promise<{ task: TaskRecord; session: number; run: ClaimedRun }> {
      const task = await alone(name, options);
      const session = await stage.session("worker");
      await stage.enqueue(task, write);
      const [run] = (await stage.claim(session, [task], stage.nowMs + 60_000)) as [ClaimedRun];
      return { task, session, run };
    }
    const fellSilent = { code: "WORKER_LOST", message: expect.stringMatching(/^the worker ".+" fell silent/) };

    it("if it has started, is not reclaimed while the session lives, nor before the task's grace has passed", async () => {
      const { session, run } = await lost("grace", { grace: "2s" });
      await stage.store.claims.report(session, [
        { runId: run.runId, fence: run.fence, startedMs: stage.nowMs, progress: null },
      ]);
      expect(await stage.store.claims.reclaim(session, 60_000, stage.nowMs, 10)).toEqual([]);
      await stage.store.sessions.end(session, null, stage.nowMs, "silent");
      expect(await stage.store.claims.reclaim(session, 1_999, stage.nowMs, 10)).toEqual([]);
      const [back] = await stage.store.claims.reclaim(session, 2_000, stage.nowMs + 2_000, 10);
      expect(back).toMatchObject({ runId: run.runId, fence: run.fence, outcome: "retry" });
      expect(await stage.store.claims.reclaim(session, 2_000, stage.nowMs, 10), "taken back twice").toEqual([]);
    });

    it("runs again by default, with the loss kept as an attempt", async () => {
      const { task, session, run } = await lost("again", { grace: 0 });
      await stage.store.sessions.end(session, null, stage.nowMs, "silent");
      await stage.store.claims.reclaim(session, 0, stage.nowMs + 5, 10);
      const [again] = (await stage.claim(await stage.session("worker"), [task], stage.nowMs + 5)) as [ClaimedRun];
      expect(again).toMatchObject({ runId: run.runId, attempt: 2 });
      expect(again.fence).toBeGreaterThan(run.fence);
      expect(await stage.store.runs.attempts(run.runId)).toMatchObject([
        { attempt: 1, fence: run.fence, outcome: "lost", error: { code: "WORKER_LOST" } },
      ]);
    });

    it("fails if the task's policy says so", async () => {
      const { session, run } = await lost("fail", { grace: 0, onWorkerLost: "fail" });
      await stage.store.sessions.end(session, null, stage.nowMs, "silent");
      expect(await stage.store.claims.reclaim(session, 0, stage.nowMs, 10)).toMatchObject([{ outcome: "fail" }]);
      expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "failed", error: fellSilent });
    });

    it("is cancelled if its cancellation was requested", async () => {
      const { session, run } = await lost("cancel-asked", { grace: 0 });
      expect(await stage.store.runs.cancel(run.runId, "no more", stage.nowMs)).toBe("asked");
      await stage.store.sessions.end(session, null, stage.nowMs, "silent");
      await stage.store.claims.reclaim(session, 0, stage.nowMs, 10);
      expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "cancelled", error: fellSilent });
    });

    it("ends with its task if that was removed meanwhile", async () => {
      const { session, run } = await lost("lost-and-removed", { grace: 0 });
      await stage.store.claims.report(session, [
        { runId: run.runId, fence: run.fence, startedMs: stage.nowMs, progress: null },
      ]);
      await stage.store.tasks.remove("lost-and-removed", change(stage.nowMs));
      await stage.store.claims.report(session, [
        { runId: run.runId, fence: run.fence, startedMs: stage.nowMs, progress: null },
      ]);
      await stage.store.sessions.end(session, null, stage.nowMs, "silent");
      await stage.store.claims.reclaim(session, 0, stage.nowMs, 10);
      expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "cancelled", error: fellSilent });
    });

    it("without a reported start is reclaimed at once, ignoring the grace; its task's policy decides", async () => {
      const { session, run } = await lost("unstarted", { grace: "10m", onWorkerLost: "fail" });
      await stage.store.sessions.end(session, null, stage.nowMs, "silent");
      expect(await stage.store.claims.reclaim(session, 0, stage.nowMs, 10)).toMatchObject([{ outcome: "fail" }]);
      expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "failed", error: { code: "WORKER_LOST" } });
    });

    it("that was due after its session ended is released as if it had not been claimed", async () => {
      for (const onWorkerLost of ["retry", "fail", "ask"] as const) {
        const { session, run } = await lost(
          `ahead-${onWorkerLost}`,
          { grace: "10m", onWorkerLost },
          { dueMs: stage.nowMs + 1 },
        );
        await stage.store.sessions.end(session, null, stage.nowMs, "silent");
        expect(await stage.store.claims.reclaim(session, 0, stage.nowMs, 10)).toMatchObject([{ outcome: "release" }]);
        expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "ready", attempt: 0 });
        expect(await stage.store.runs.attempts(run.runId)).toEqual([]);
      }
    });

    it("waits for a decision with onWorkerLost: ask; it cannot be claimed, and its slot is free", async () => {
      const { task, session, run } = await lost("asked", { grace: 0, onWorkerLost: "ask", overlap: "queue" });
      const next = await stage.enqueue(task);
      await stage.store.sessions.end(session, null, stage.nowMs + 1, "silent");
      expect(await stage.store.claims.reclaim(session, 0, stage.nowMs + 1, 10)).toMatchObject([{ outcome: "ask" }]);
      expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "undecided", attempt: 1 });
      const heir = await stage.session("worker");
      const [other, ...more] = await stage.claim(heir, [task], stage.nowMs + 60_000);
      expect([other?.runId, more]).toEqual([next, []]);
      const late = settlement(run, succeededVerdict, stage.nowMs + 2);
      expect(await stage.store.claims.settle(session, [late], stage.nowMs + 2)).toEqual(new Set([run.fence]));
      expect(await stage.store.flow.lateResults(run.runId)).toMatchObject([{ fence: run.fence, outcome: "succeeded" }]);

      await stage.store.flow.decide(run.runId, "retry", "", stage.nowMs + 3, "test");
      expect(await stage.store.runs.find(run.runId), "the place is taken").toMatchObject({ state: "held" });
      await expect(stage.store.flow.decide(run.runId, "fail", "", stage.nowMs + 3, "test")).rejects.toMatchObject({
        code: "RUN_STATE",
      });
      await stage.store.claims.settle(
        heir,
        [settlement(other as ClaimedRun, succeededVerdict, stage.nowMs + 4)],
        stage.nowMs + 4,
      );
      const [again] = await stage.claim(heir, [task], stage.nowMs + 60_000);
      expect(again).toMatchObject({ runId: run.runId, attempt: 2 });
      await expect(stage.store.flow.decide(10 ** 12, "fail", "", stage.nowMs, "test")).rejects.toMatchObject({
        code: "RUN_UNKNOWN",
      });
    });

    it("interrupted by a stopping worker waits for that decision too", async () => {
      const { session, run } = await lost("cut-short", { onWorkerLost: "ask" });
      const verdict = { kind: "retry" as const, dueMs: stage.nowMs, error: '{"code":"STOPPED"}', ask: true };
      expect(await stage.store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs)).toEqual(
        new Set(),
      );
      await stage.store.flow.decide(run.runId, "fail", "it did nothing", stage.nowMs + 5, "test");
      const found = await stage.store.runs.find(run.runId);
      expect(found).toMatchObject({ state: "failed", error: { code: "WORKER_LOST" } });
      expect(JSON.stringify(found.error)).toContain("it did nothing");
    });

    it("does not run before its time", async () => {
      const { task, session } = await lost("early", { grace: 0 }, { dueMs: stage.nowMs + 30_000 });
      await stage.store.sessions.end(session, null, stage.nowMs, "silent");
      await stage.store.claims.reclaim(session, 0, stage.nowMs, 10);
      const heir = await stage.session("worker");
      expect(await stage.claim(heir, [task], stage.nowMs + 29_999)).toEqual([]);
      expect(await stage.claim(heir, [task], stage.nowMs + 30_000)).toHaveLength(1);
    });

    it("fails as the suspected cause after three losses", async () => {
      const { task, session, run } = await lost("poisonous", { grace: 0 });
      let holder = session;
      const outcomes: string[] = [];
      for (let loss = 0; loss < 3; loss++) {
        await stage.store.sessions.end(holder, null, stage.nowMs, "killed by it");
        outcomes.push(...(await stage.store.claims.reclaim(holder, 0, stage.nowMs, 10)).map(({ outcome }) => outcome));
        holder = await stage.session("worker");
        await stage.claim(holder, [task]);
      }
      expect(outcomes).toEqual(["retry", "retry", "fail"]);
      expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "failed" });
    });

    it("goes to one of several concurrent reapers, in whole batches", async () => {
      const task = await alone("reapers", { grace: 0 });
      const session = await stage.session("worker");
      await stage.store.runs.enqueue(
        Array.from({ length: 500 }, () => stage.write(task)),
        stage.nowMs,
      );
      await stage.claim(session, [task]);
      await stage.store.sessions.end(session, null, stage.nowMs, "silent");
      const stores = [stage.store, await stage.another(), await stage.another()];
      const back = await Promise.all(
        stores.map(async (store) => {
          const mine: number[] = [];
          for (let i = 0; i < 10; i++)
            mine.push(...(await store.claims.reclaim(session, 0, stage.nowMs, 100)).map(({ runId }) => runId));
          return mine;
        }),
      );
      expect(back.flat()).toHaveLength(500);
      expect(new Set(back.flat()).size).toBe(500);
      expect((await stage.store.tasks.counters([task.taskId])).get(task.taskId)?.retried).toBe(500);
    });
  });
});

interface PlanNode {
  "Node Type": string;
  "Index Name"?: string;
  "Relation Name"?: string;
  "Shared Hit Blocks"?: number;
  "Shared Read Blocks"?: number;
  Plans?: PlanNode[];
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}
