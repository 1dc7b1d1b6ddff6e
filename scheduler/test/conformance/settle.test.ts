import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

const failedVerdict: Verdict = { kind: "ended", outcome: "failed", result: null, error: '{"message":"no"}' };

describe.each(everyPostgres())("verdicts on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  let groups = 0;
  async function claimed(
    name: string,
    options = {},
    count = 1,
  ): Promise<{ task: TaskRecord; runs: ClaimedRun[]; run: ClaimedRun }> {
    const task = await stage.task(name, { group: `g${++groups}`, grace: 0, ...options });
    await stage.store.runs.enqueue(
      Array.from({ length: count }, () => stage.write(task)),
      stage.nowMs,
    );
    const runs = await stage.claim(session, [task]);
    return { task, runs, run: runs[0] as ClaimedRun };
  }
  const settle = (run: ClaimedRun, verdict: Verdict, endedMs = stage.nowMs, from = session) =>
    stage.store.claims.settle(from, [settlement(run, verdict, endedMs)], endedMs);
  const late = (run: ClaimedRun) =>
    stage.rows("select outcome, session_id from $s.late_result where run_id = $1", [run.runId]);
  const counters = async (task: TaskRecord) => (await stage.store.tasks.counters([task.taskId])).get(task.taskId);
  const retryAt = (dueMs: number): Verdict => ({ kind: "retry", dueMs, error: '{"message":"again"}' });

  async function loseSession(): Promise<void> {
    const lost = session;
    session = await stage.session("worker");
    await stage.store.sessions.end(lost, null, stage.nowMs, "silent");
    await stage.store.claims.reclaim(lost, 60_000, stage.nowMs, 1_000);
  }

  it("take a mixed batch at once", async () => {
    const { task, runs } = await claimed("mixed", {}, 40);
    const verdicts: Verdict[] = [
      { kind: "ended", outcome: "succeeded", result: '{"n":1}', error: null },
      failedVerdict,
      { kind: "ended", outcome: "cancelled", result: null, error: null },
      retryAt(stage.nowMs + 1_000),
      { kind: "released" },
    ];
    const batch = runs.map((run, i) => settlement(run, verdicts[i % 5] as Verdict, stage.nowMs + 1));
    expect(await stage.store.claims.settle(session, batch, stage.nowMs + 1)).toEqual(new Set());
    const states = new Map<string, number>();
    for (const run of await stage.store.runs.list({ task: "mixed", limit: 100 }))
      states.set(run.state, (states.get(run.state) ?? 0) + 1);
    expect(Object.fromEntries(states)).toEqual({ succeeded: 8, failed: 8, cancelled: 8, ready: 16 });
    expect(await counters(task)).toEqual({
      taskId: undefined,
      succeeded: 8,
      failed: 8,
      cancelled: 8,
      skipped: 0,
      missed: 0,
      retried: 8,
    });
    const again = await stage.claim(session, [task], stage.nowMs + 1_000);
    expect(again.map(({ attempt }) => attempt).sort()).toEqual([...Array(8).fill(1), ...Array(8).fill(2)]);
    const won = await stage.store.runs.find((runs[0] as ClaimedRun).runId);
    expect(won).toMatchObject({ state: "succeeded", result: { n: 1 }, endedMs: stage.nowMs + 1, attempt: 1 });
  });

  it.each([
    ["succeeded", succeededVerdict],
    ["failed", failedVerdict],
    ["retry", retryAt(0)],
    ["released", { kind: "released" } as const],
  ])("apply the same %s once, however often it is repeated, and refuse no repetition", async (name, verdict) => {
    const { task, run } = await claimed(`twice-${name}`);
    for (let i = 0; i < 3; i++) expect(await settle(run, verdict, stage.nowMs + 7)).toEqual(new Set());
    expect(await late(run)).toEqual([]);
    const total = Object.values((await counters(task)) ?? {}).reduce((sum, n) => sum + (n ?? 0), 0);
    expect(total).toBe(name === "released" ? 0 : 1);
  });

  it.each<[string, Verdict, Verdict]>([
    ["two failures", failedVerdict, { kind: "ended", outcome: "failed", result: null, error: '{"message":"nor"}' }],
    ["a retry and a success", { kind: "retry", dueMs: 0, error: '{"message":"again"}' }, succeededVerdict],
    ["a success and a retry", succeededVerdict, { kind: "retry", dueMs: 0, error: '{"message":"again"}' }],
    [
      "two retries",
      { kind: "retry", dueMs: 0, error: '{"message":"1"}' },
      { kind: "retry", dueMs: 0, error: '{"message":"2"}' },
    ],
    ["a release and a failure", { kind: "released" }, failedVerdict],
    ["a success twice", succeededVerdict, succeededVerdict],
  ])(
    "apply the first of several verdicts on one claim in a call, and record the others: %s",
    async (name, one, other) => {
      const { task, runs } = await claimed(`several-${name.replaceAll(" ", "-")}`, { overlap: { allow: 9 } }, 3);
      const [run, beside, last] = runs as [ClaimedRun, ClaimedRun, ClaimedRun];
      const batch = [
        settlement(beside, succeededVerdict, stage.nowMs),
        settlement(run, one, stage.nowMs),
        settlement(last, failedVerdict, stage.nowMs),
        settlement(run, other, stage.nowMs),
      ];
      expect(await stage.store.claims.settle(session, batch, stage.nowMs)).toEqual(new Set());
      const state = one.kind === "ended" ? one.outcome : "ready";
      expect((await stage.store.runs.find(run.runId)).state).toBe(state);
      expect((await stage.store.runs.find(beside.runId)).state).toBe("succeeded");
      expect((await stage.store.runs.find(last.runId)).state).toBe("failed");
      expect(await late(run)).toEqual([{ outcome: other === succeededVerdict ? 0 : 1, session_id: session }]);
      const total = Object.values((await counters(task)) ?? {}).reduce((sum, n) => sum + (n ?? 0), 0);
      expect(total).toBe(one.kind === "released" ? 2 : 3);
      expect((await stage.store.runs.attempts(run.runId)).length).toBe(one.kind === "retry" ? 1 : 0);
    },
  );

  it("write one dead letter for a failure if a batch also names the run's earlier claim", async () => {
    const { task, run } = await claimed("old-and-new");
    await settle(run, retryAt(stage.nowMs));
    const [now] = (await stage.claim(session, [task])) as [ClaimedRun];
    const batch = [settlement(run, failedVerdict, stage.nowMs), settlement(now, failedVerdict, stage.nowMs)];
    expect(await stage.store.claims.settle(session, batch, stage.nowMs)).toEqual(new Set([run.fence]));
    expect(await stage.rows("select fingerprint from $s.dead_letter where run_id = $1", [run.runId])).toHaveLength(1);
  });

  it("refuse an old fence, record it, and change nothing", async () => {
    const { task, run } = await claimed("stale");
    await settle(run, retryAt(stage.nowMs));
    const [now] = (await stage.claim(session, [task])) as [ClaimedRun];
    expect(now.runId).toBe(run.runId);
    const before = await stage.store.runs.find(run.runId);
    for (const verdict of [succeededVerdict, { kind: "released" } as const, failedVerdict]) {
      expect(await settle(run, verdict, stage.nowMs + 9)).toEqual(new Set([run.fence]));
    }
    expect(await stage.store.runs.find(run.runId)).toEqual(before);
    expect((await late(run)).length).toBeGreaterThan(0);
    expect(await settle(now, succeededVerdict)).toEqual(new Set());
  });

  it.each(["retry", "fail"] as const)(
    "refuse and record the verdict of a lost claim (%s) that was not claimed again",
    async (onWorkerLost) => {
      const { task, run } = await claimed(`lost-${onWorkerLost}`, { onWorkerLost });
      await loseSession();
      const before = await stage.store.runs.find(run.runId);
      expect(before.state).toBe(onWorkerLost === "retry" ? "ready" : "failed");
      expect(await settle(run, succeededVerdict, stage.nowMs + 5)).toEqual(new Set([run.fence]));
      expect(await late(run)).toMatchObject([{ outcome: 0 }]);
      expect(await stage.store.runs.find(run.runId)).toEqual(before);
      expect(await counters(task)).toMatchObject({ succeeded: 0 });
    },
  );

  it.each([
    ["a retry", { kind: "retry", dueMs: 0, error: null } as const],
    ["a failure", failedVerdict],
    ["a release", { kind: "released" } as const],
  ])("refuse %s from a claim that was taken back", async (name, verdict) => {
    const { run } = await claimed(`taken-${name.split(" ")[1]}`);
    await loseSession();
    const before = await stage.store.runs.find(run.runId);
    expect(await settle(run, verdict, stage.nowMs + 5)).toEqual(new Set([run.fence]));
    expect(await stage.store.runs.find(run.runId)).toEqual(before);
  });

  it("cancel a run whose attempt failed after its cancellation was requested", async () => {
    const { task, run } = await claimed("cancel-meets-retry");
    await stage.store.runs.cancel(run.runId, "enough", stage.nowMs);
    expect(await stage.store.claims.recalls(session)).toMatchObject([
      { runId: run.runId, fence: run.fence, kind: "cancel", why: "enough" },
    ]);
    expect(await settle(run, retryAt(stage.nowMs), stage.nowMs + 3)).toEqual(new Set());
    expect(await settle(run, retryAt(stage.nowMs), stage.nowMs + 3), "the same again").toEqual(new Set());
    expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "cancelled" });
    expect(await counters(task)).toMatchObject({ cancelled: 1, retried: 0 });
  });

  it("keep a success that came before the worker was notified of the cancellation", async () => {
    const { run } = await claimed("success-wins");
    await stage.store.runs.cancel(run.runId, "too late", stage.nowMs);
    expect(await settle(run, succeededVerdict)).toEqual(new Set());
    expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "succeeded" });
    await expect(stage.store.runs.cancel(run.runId, "x", stage.nowMs)).rejects.toMatchObject({ code: "RUN_STATE" });
  });

  it("cancel a claim released after its cancellation was requested", async () => {
    const { run } = await claimed("cancel-meets-release");
    await stage.store.runs.cancel(run.runId, "enough", stage.nowMs);
    for (let i = 0; i < 2; i++) expect(await settle(run, { kind: "released" }, stage.nowMs + 3)).toEqual(new Set());
    expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "cancelled" });
  });

  it("give no further attempt to a run of a task removed meanwhile", async () => {
    const { run } = await claimed("removed-meets-retry");
    await stage.store.claims.report(session, [
      { runId: run.runId, fence: run.fence, startedMs: stage.nowMs, progress: null },
    ]);
    await stage.store.tasks.remove("removed-meets-retry", change(stage.nowMs));
    expect(await settle(run, retryAt(stage.nowMs), stage.nowMs + 3)).toEqual(new Set());
    expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "cancelled" });
  });

  describe("inside the user's transaction", () => {
    it.each(["allow", "queue"] as const)("both take effect or neither does (overlap %s)", async (overlap) => {
      const { task, run } = await claimed(`tx-${overlap}`, { overlap });
      await stage.rows(`create table $s.effect_${overlap} (n int)`);
      const client = await stage.sql.connect();
      const attempt = async (end: "commit" | "rollback") => {
        await client.query("begin");
        await client.query(`insert into ${stage.schema}.effect_${overlap} values (1)`);
        const stands = await stage.store.claims.settleIn(
          client,
          session,
          settlement(run, succeededVerdict, stage.nowMs),
          stage.nowMs,
        );
        await client.query(end);
        return stands;
      };
      try {
        expect(await attempt("rollback")).toBe(true);
        expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "claimed" });
        expect(await attempt("commit")).toBe(true);
        expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "succeeded" });
        expect(await attempt("rollback"), "a second time").toBe(false);
      } finally {
        client.release();
      }
      expect(await stage.one(`select count(*) as n from $s.effect_${overlap}`)).toEqual({ n: 1 });
      // The handler returns after its transaction completed the run, so its verdict arrives later and must be accepted.
      expect(await settle(run, succeededVerdict, stage.nowMs + 50)).toEqual(new Set());
      expect(await counters(task)).toMatchObject({ succeeded: 1 });
    });

    it("refuses a claim that was taken back", async () => {
      const { run } = await claimed("tx-stale");
      await loseSession();
      const client = await stage.sql.connect();
      try {
        await client.query("begin");
        expect(
          await stage.store.claims.settleIn(
            client,
            session,
            settlement(run, succeededVerdict, stage.nowMs),
            stage.nowMs,
          ),
        ).toBe(false);
        await client.query("rollback");
      } finally {
        client.release();
      }
    });

    it("blocks a second completion while the first is open", async () => {
      const { task, run } = await claimed("tx-race");
      const client = await stage.sql.connect();
      try {
        await client.query("begin");
        await stage.store.claims.settleIn(client, session, settlement(run, succeededVerdict, stage.nowMs), stage.nowMs);
        const other = settle(run, failedVerdict, stage.nowMs + 5);
        await client.query("commit");
        expect(await other).toEqual(new Set([run.fence]));
      } finally {
        client.release();
      }
      expect(await counters(task)).toMatchObject({ succeeded: 1, failed: 0 });
    });
  });

  it("count exactly in a burst on several connections, while counters are being merged", async () => {
    const tasks: TaskRecord[] = [];
    const runs: ClaimedRun[] = [];
    for (let i = 0; i < 4; i++) {
      const one = await claimed(`burst-${i}`, i === 3 ? { overlap: { allow: 1_000 } } : {}, 300);
      tasks.push(one.task);
      runs.push(...one.runs);
    }
    expect(runs).toHaveLength(1_200);
    const stores = await Promise.all(Array.from({ length: 4 }, () => stage.another({ connectionsMax: 2 })));
    const verdicts = [
      succeededVerdict,
      failedVerdict,
      { kind: "ended", outcome: "cancelled", result: null, error: null } as const,
    ];
    const batches: Promise<unknown>[] = [];
    for (let from = 0, batch = 0; from < runs.length; from += 17, batch++) {
      const items = runs
        .slice(from, from + 17)
        .map((run, i) => settlement(run, verdicts[(from + i) % 3] as Verdict, stage.nowMs));
      batches.push((stores[batch % 4] as Stage["store"]).claims.settle(session, items, stage.nowMs));
      if (batch % 5 === 0) batches.push((stores[(batch + 1) % 4] as Stage["store"]).tasks.foldCounters(10, 1));
    }
    await Promise.all(batches);
    const rows = () =>
      stage.rows(
        `select task_id, count(*) filter (where outcome = 0) as succeeded, count(*) filter (where outcome = 1) as failed,
                count(*) filter (where outcome = 2) as cancelled from $s.run_history where task_id = any($1) group by task_id order by 1`,
        [tasks.map(({ taskId }) => taskId)],
      );
    const told = async () => {
      const found = await stage.store.tasks.counters(tasks.map(({ taskId }) => taskId));
      return tasks.map(({ taskId }) => {
        const { succeeded, failed, cancelled } = found.get(taskId) as NonNullable<ReturnType<typeof found.get>>;
        return { task_id: taskId, succeeded, failed, cancelled };
      });
    };
    expect(
      (await rows()).reduce(
        (sum, row) => sum + (row.succeeded as number) + (row.failed as number) + (row.cancelled as number),
        0,
      ),
    ).toBe(1_200);
    expect(await told()).toEqual(await rows());
    while ((await stage.store.tasks.foldCounters(100, 2)) > 0);
    expect(await told(), "after folding").toEqual(await rows());
    expect(await stage.one("select count(*) as n from $s.tally_delta")).toEqual({ n: 0 });
  });
});
