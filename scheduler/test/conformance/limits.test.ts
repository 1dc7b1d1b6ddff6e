import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import type { EnqueueWrite } from "../../src/run/run-record.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { type LimitEvent, type LimitPolicy, limitEvents, limitPolicies, limitTable } from "../oracle/limit-table.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict, until } from "../support/store-stage.ts";

const spanMs = 60_000;
const oneOf: Record<LimitPolicy, TaskOptions> = {
  overlap: { overlap: "queue" },
  perKey: { limit: { perKey: 1 } },
  perWorker: { limit: { perWorker: 1 } },
  perGroup: {},
  rate: { rate: { limit: 1, per: spanMs } },
  "rate by key": { rate: { limit: 1, per: spanMs, key: true } },
};

describe.each(everyPostgres())("limits on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  let turns = 0;
  let made = 0;
  const limited = (options: TaskOptions) => stage.task(`l${++made}`, { group: `g${made}`, grace: 0, ...options });
  const end = (run: ClaimedRun, verdict: Verdict = succeededVerdict, nowMs = stage.nowMs, of = session) =>
    stage.store.claims.settle(of, [settlement(run, verdict, nowMs)], nowMs);
  /** Applies the policies to the due runs, addresses the runs to the session if necessary, and claims them. */
  async function begin(task: TaskRecord, nowMs = stage.nowMs, of = session): Promise<ClaimedRun[]> {
    await stage.store.plans.admitHeld(nowMs, nowMs);
    const { runs } = await stage.store.routes.view(nowMs, 100, [], 0);
    const writes = runs
      .filter(({ taskId }) => taskId === task.taskId)
      .map(({ runId, taskId }) => ({ runId, taskId, sessionId: of, node: "n", turn: ++turns }));
    if (writes.length > 0) await stage.store.routes.address(writes, stage.nowMs);
    const request = {
      sessionId: of,
      groupIds: [-of, task.groupId],
      exceptTaskIds: [],
      untilMs: nowMs,
      limit: 1_000,
      nowMs,
    };
    return (await stage.store.claims.claim(request)).runs.filter(({ taskId }) => taskId === task.taskId);
  }
  const many = (task: TaskRecord, writes: Partial<EnqueueWrite>[], nowMs = stage.nowMs) =>
    stage.store.runs.enqueue(
      writes.map((write) => stage.write(task, write)),
      nowMs,
    );

  describe.each(limitPolicies)("%s", (policy) => {
    it.each(limitEvents)("%s: another run may begin only if the table allows it", async (event: LimitEvent) => {
      const task = await limited(oneOf[policy]);
      if (policy === "perGroup") await stage.store.groups.limit(task.definition.group, 1, change(stage.nowMs));
      const of = await stage.session("worker");
      await many(task, [{}, { dueMs: stage.nowMs + 1 }]);
      const [first] = (await begin(task, stage.nowMs, of)) as [ClaimedRun];
      let nowMs = stage.nowMs + 1;
      let worker = of;
      // Moves the first run far into the future, so that it does not take the freed place itself.
      if ((event === "is released" || event === "is lost") && policy !== "overlap")
        await stage.sql.query(`update ${stage.schema}.run set due_ms = $2 where id = $1`, [
          first.runId,
          nowMs + spanMs * 9,
        ]);
      if (event === "ends") await end(first, succeededVerdict, nowMs, of);
      if (event === "retries") await end(first, { kind: "retry", dueMs: nowMs + spanMs * 9, error: null }, nowMs, of);
      if (event === "is released") await end(first, { kind: "released" }, nowMs, of);
      if (event === "is lost") {
        await stage.store.sessions.end(of, null, nowMs, "silent");
        await stage.store.claims.reclaim(of, 0, nowMs, 10);
        worker = await stage.session("worker");
      }
      if (event === "is cancelled") {
        await stage.store.runs.cancel(first.runId, "", nowMs);
        await end(first, { kind: "ended", outcome: "cancelled", result: null, error: null }, nowMs, of);
      }
      if (event === "the span passes") nowMs += spanMs;
      const second = await begin(task, nowMs, worker);
      const another = second.some(({ runId }) => runId !== first.runId);
      expect(another ? "free" : "taken").toBe(limitTable[policy][event]);
    });
  });

  it("per key: at most n runs of a key, keys do not block each other, and each keeps its order", async () => {
    const task = await limited({ limit: { perKey: 2 } });
    const keys = ["a", "b", "c"];
    await many(
      task,
      Array.from({ length: 30 }, (_, i) => ({
        limitKey: keys[i % 3] as string,
        dueMs: stage.nowMs - 30 + i,
        payload: String(i),
      })),
    );
    const order: Record<string, number[]> = { 0: [], 1: [], 2: [] };
    for (let left = 30; left > 0; ) {
      const runs = await begin(task);
      expect(runs).toHaveLength(Math.min(6, left));
      // A claim returns its runs in no particular order.
      for (const run of runs.sort((a, b) => (a.payload as number) - (b.payload as number))) {
        order[(run.payload as number) % 3]?.push(run.payload as number);
        await end(run);
      }
      left -= runs.length;
    }
    for (const seen of Object.values(order)) expect(seen).toEqual([...seen].sort((a, b) => a - b));
  });

  it("per key: 2,000 waiting runs of one key do not slow others; with few slots, keys are served fairly", async () => {
    const task = await limited({ limit: { perKey: 1 }, overlap: { allow: 2 } });
    await many(
      task,
      Array.from({ length: 2_000 }, (_, i) => ({ limitKey: "crowd", dueMs: stage.nowMs - 5_000 + i })),
    );
    await many(
      task,
      Array.from({ length: 20 }, (_, i) => ({ limitKey: `k${i % 4}` })),
    );
    const begun: (string | null)[] = [];
    for (let i = 0; i < 10; i++) {
      const runs = await begin(task);
      expect(runs).toHaveLength(2);
      for (const { runId } of runs) begun.push((await stage.store.runs.find(runId)).limitKey ?? null);
      for (const run of runs) await end(run);
    }
    expect(new Set(begun).size, "each key had its turn").toBe(5);
    expect(begun.filter((key) => key === "crowd").length).toBeLessThanOrEqual(5);
  });

  it("rate: no period exceeds the limit, and the wait is no longer than necessary", async () => {
    const task = await limited({ rate: { limit: 3, per: "1s" } });
    await many(
      task,
      Array.from({ length: 12 }, () => ({})),
    );
    const begun: number[] = [];
    for (let nowMs = stage.nowMs; begun.length < 12; nowMs += 100) {
      for (const _ of await begin(task, nowMs)) begun.push(nowMs - stage.nowMs);
      if (nowMs > stage.nowMs + 20_000) break;
    }
    expect(begun).toEqual([0, 1_000, 2_000, 3_000].flatMap((ms) => [ms, ms, ms]));
  });

  it.each([
    ["a rate", { rate: { limit: 1, per: "1s" } }],
    ["a rate beside keys", { rate: { limit: 1, per: "1s" }, limit: { perKey: 1 } }],
    ["a rate of each key", { rate: { limit: 1, per: "1s", key: true } }],
  ] as const)("%s: the write that takes the last token signals when the next one is available", async (_, options) => {
    const task = await limited(options);
    const ended = new AbortController();
    const told: number[] = [];
    let listens = false;
    const heard = stage.store.signals.listen((signal) => {
      if (signal.kind === "held") told.push(signal.dueMs);
      listens ||= signal.kind === "resync";
    }, ended.signal);
    await until("signals to be heard", () => listens);
    await many(task, [{ limitKey: "a" }, { limitKey: "rate" in options && "key" in options.rate ? "a" : "b" }]);
    try {
      await until("the next token's time to be told", () => told.includes(stage.nowMs + 1_000));
    } finally {
      ended.abort();
      await heard;
    }
  });

  it("rate: of the waiting runs, the highest priority comes first", async () => {
    const task = await limited({ rate: { limit: 1, per: "1s" } });
    await many(task, [{ payload: "1", dueMs: stage.nowMs - 2 }, { payload: "2" }, { payload: "0", priority: 7 }]);
    const begun: unknown[] = [];
    for (let ms = 0; ms < 3_000; ms += 1_000)
      for (const { payload } of await begin(task, stage.nowMs + ms)) begun.push(payload);
    expect(begun).toEqual([0, 1, 2]);
  });

  it("rate: a large limit is counted in steps, and never exceeded", async () => {
    const task = await limited({ rate: { limit: 250, per: "10s" } });
    await many(
      task,
      Array.from({ length: 600 }, () => ({})),
    );
    const begun: number[] = [];
    for (let nowMs = stage.nowMs; nowMs < stage.nowMs + 25_000; nowMs += 1_000)
      for (const _ of await begin(task, nowMs)) begun.push(nowMs);
    expect(begun).toHaveLength(600);
    for (const from of begun)
      expect(begun.filter((ms) => ms >= from && ms < from + 10_000).length).toBeLessThanOrEqual(250);
  });

  it("rate by key: each key has its own rate", async () => {
    const task = await limited({ rate: { limit: 2, per: "1s", key: true } });
    await many(
      task,
      Array.from({ length: 12 }, (_, i) => ({ limitKey: `k${i % 3}` })),
    );
    expect(await begin(task)).toHaveLength(6);
    expect(await begin(task, stage.nowMs + 999)).toHaveLength(0);
    expect(await begin(task, stage.nowMs + 1_000)).toHaveLength(6);
  });

  const retryAt = (dueMs: number): Verdict => ({ kind: "retry", dueMs, error: null });
  /**
   * Advances time in steps, and lets each run fail at once until its last attempt succeeds.
   * @returns when each attempt started, in ms from the stage's time
   */
  async function failing(task: TaskRecord, tries: number, stepMs: number, untilMs: number): Promise<number[]> {
    const begun: number[] = [];
    for (let ms = 0; ms < untilMs; ms += stepMs) {
      const nowMs = stage.nowMs + ms;
      const runs = await begin(task, nowMs);
      for (const _ of runs) begun.push(ms);
      const verdicts = runs.map((run) => (run.attempt < tries ? retryAt(nowMs) : succeededVerdict));
      const settled = runs.map((run, i) => settlement(run, verdicts[i] as Verdict, nowMs));
      expect(await stage.store.claims.settle(session, settled, nowMs)).toEqual(new Set());
    }
    return begun;
  }
  const mostIn = (begun: number[], spanMs: number) =>
    Math.max(...begun.map((from) => begun.filter((ms) => ms >= from && ms < from + spanMs).length));

  it("rate: each attempt takes a token, so that the called service never sees more than the rate", async () => {
    const task = await limited({ rate: { limit: 2, per: "1s" } });
    await many(
      task,
      Array.from({ length: 6 }, () => ({})),
    );
    const begun = await failing(task, 2, 250, 7_000);
    expect(begun).toHaveLength(12);
    expect(mostIn(begun, 1_000)).toBe(2);
    expect(begun.at(-1), "and nothing is left unused").toBe(5_000);
  });

  it("rate: attempts are counted in steps, and by key, in the same way", async () => {
    const large = await limited({ rate: { limit: 250, per: "10s" } });
    await many(
      large,
      Array.from({ length: 300 }, () => ({})),
    );
    const begun = await failing(large, 2, 2_500, 40_000);
    expect(begun).toHaveLength(600);
    expect(mostIn(begun, 10_000)).toBeLessThanOrEqual(250);

    const keyed = await limited({ rate: { limit: 1, per: "1s", key: true } });
    await many(
      keyed,
      Array.from({ length: 6 }, (_, i) => ({ limitKey: `k${i % 2}` })),
    );
    expect(await failing(keyed, 2, 1_000, 7_000)).toEqual([0, 1, 2, 3, 4, 5].flatMap((s) => [s * 1_000, s * 1_000]));
  });

  it("rate: an attempt due in an hour reserves a token for that time, and takes none from earlier runs", async () => {
    const task = await limited({ rate: { limit: 1, per: "1s" }, limit: { perKey: 1 } });
    await many(task, [{ limitKey: "a" }, { limitKey: "a" }, { limitKey: "b" }, { limitKey: "c" }]);
    const [first] = (await begin(task)) as [ClaimedRun];
    await end(first, retryAt(stage.nowMs + 3_600_000));
    const [second] = await begin(task, stage.nowMs + 1_000);
    const limitKeys = [first, second as ClaimedRun].map(({ runId }) => stage.store.runs.find(runId));
    expect((await Promise.all(limitKeys)).map(({ limitKey }) => limitKey)).toEqual(["a", "b"]);
    expect((await begin(task, stage.nowMs + 3_599_500)).length, "half a second before it").toBe(0);
    const again = await begin(task, stage.nowMs + 3_600_000);
    expect(again.map(({ runId, attempt }) => [runId, attempt])).toEqual([[first.runId, 2]]);
  });

  it("rate: a run lost with its worker takes another token, unless it had not started or awaits an operator", async () => {
    const task = await limited({ rate: { limit: 2, per: "1s" } });
    await many(task, [{}, {}, {}]);
    const of = await stage.session("worker");
    const [one, other] = (await begin(task, stage.nowMs, of)) as [ClaimedRun, ClaimedRun];
    await end(other, { kind: "released" }, stage.nowMs, of);
    const back = await begin(task, stage.nowMs, of);
    expect(back.map(({ runId }) => runId)).toEqual([other.runId]);
    await stage.store.claims.report(of, [
      { runId: one.runId, fence: one.fence, startedMs: stage.nowMs, progress: null },
    ]);
    await end(back[0] as ClaimedRun, { kind: "retry", dueMs: stage.nowMs, error: null, ask: true }, stage.nowMs, of);
    await stage.store.sessions.end(of, null, stage.nowMs, "silent");
    expect(await stage.store.claims.reclaim(of, 0, stage.nowMs, 10)).toHaveLength(1);
    expect(await begin(task, stage.nowMs + 999)).toEqual([]);
    const then = await begin(task, stage.nowMs + 1_000);
    expect(then.map(({ runId }) => runId)).toContain(one.runId);
    expect(then, "beside one that is new").toHaveLength(2);
  });

  it("rate: retries and new runs in a burst exceed the limit in no period", async () => {
    const task = await limited({ rate: { limit: 5, per: "1s" } });
    await many(
      task,
      Array.from({ length: 16 }, () => ({})),
    );
    const stores = [stage.store, await stage.another()];
    const begun: number[] = [];
    for (let ms = 0; ms < 6_000; ms += 250) {
      const nowMs = stage.nowMs + ms;
      await Promise.all(
        stores.map(async (store) => {
          await store.plans.admitHeld(nowMs, nowMs);
          const request = {
            sessionId: session,
            groupIds: [task.groupId],
            exceptTaskIds: [],
            untilMs: nowMs,
            limit: 3,
            nowMs,
          };
          const { runs } = await store.claims.claim(request);
          for (const _ of runs) begun.push(ms);
          const verdict = (run: ClaimedRun) =>
            run.attempt === 1 && run.runId % 2 === 0 ? retryAt(nowMs + 300) : succeededVerdict;
          const settled = runs.map((run) => settlement(run, verdict(run), nowMs));
          expect(await store.claims.settle(session, settled, nowMs)).toEqual(new Set());
        }),
      );
    }
    expect(begun.length).toBe(24);
    expect(mostIn(begun, 1_000)).toBeLessThanOrEqual(5);
  });

  it("signals when the next token is available, and when the next held run is due", async () => {
    const heard: string[] = [];
    const listening = new AbortController();
    const done = stage.store.signals.listen((signal) => void heard.push(JSON.stringify(signal)), listening.signal);
    await expect.poll(() => heard.length).toBeGreaterThan(0);
    const task = await limited({ rate: { limit: 1, per: "1s" } });
    await many(task, [{}, {}, { dueMs: stage.nowMs + 400 }]);
    await expect.poll(() => heard).toContain(JSON.stringify({ kind: "held", dueMs: stage.nowMs + 400 }));
    await stage.store.plans.admitHeld(stage.nowMs + 400, stage.nowMs + 400);
    await expect.poll(() => heard).toContain(JSON.stringify({ kind: "held", dueMs: stage.nowMs + 1_000 }));
    listening.abort();
    await done;
  });

  it("limits hold in a burst: many workers and enqueuers at once, for a task, a key and a worker", async () => {
    const task = await limited({ overlap: { allow: 6 }, limit: { perKey: 2, perWorker: 3 } });
    const stores = [stage.store, await stage.another(), await stage.another()];
    const sessions = await Promise.all(stores.map(() => stage.session("worker")));
    const total = 80;
    let stop = false;
    const worst = { task: 0, key: 0, worker: 0, looks: 0 };
    const watch = (async () => {
      while (!stop) {
        const [row] = await stage.rows<{ task: number; key: number; worker: number }>(
          `with c as (select limit_key, session_id from $s.run where task_id = $1 and state = 3)
           select (select count(*) from c) as task, coalesce((select max(n) from (select count(*) as n from c group by limit_key) x), 0) as key,
                  coalesce((select max(n) from (select count(*) as n from c group by session_id) x), 0) as worker`,
          [task.taskId],
        );
        worst.task = Math.max(worst.task, row?.task ?? 0);
        worst.key = Math.max(worst.key, row?.key ?? 0);
        worst.worker = Math.max(worst.worker, row?.worker ?? 0);
        worst.looks++;
      }
    })();
    let ended = 0;
    const enqueuer = (async () => {
      for (let i = 0; i < total; i += 10)
        await many(
          task,
          Array.from({ length: 10 }, (_, j) => ({ limitKey: `k${(i + j) % 7}` })),
        );
    })();
    const work = stores.map(async (store, at) => {
      const of = sessions[at] as number;
      const deadline = performance.now() + 120_000;
      while (ended < total && performance.now() < deadline) {
        await store.plans.admitHeld(stage.nowMs, stage.nowMs);
        const { runs } = await store.routes.view(stage.nowMs, 100, [], 0);
        const mine = runs.filter(({ taskId }) => taskId === task.taskId);
        if (mine.length > 0)
          await store.routes.address(
            mine.map(({ runId, taskId }, i) => {
              const to = (i + at) % sessions.length;
              return { runId, taskId, sessionId: sessions[to] as number, node: `n${to}`, turn: ++turns };
            }),
            stage.nowMs,
          );
        const request = {
          sessionId: of,
          groupIds: [-of],
          exceptTaskIds: [],
          untilMs: stage.nowMs,
          limit: 10,
          nowMs: stage.nowMs,
        };
        const { runs: claimed } = await store.claims.claim(request);
        await store.claims.settle(
          of,
          claimed.map((run) => settlement(run, succeededVerdict, stage.nowMs)),
          stage.nowMs,
        );
        ended += claimed.length;
      }
    });
    await Promise.all([enqueuer, ...work]);
    stop = true;
    await watch;
    expect(ended).toBe(total);
    expect(worst.looks).toBeGreaterThan(5);
    expect(worst.task).toBeLessThanOrEqual(6);
    expect(worst.key).toBeLessThanOrEqual(2);
    expect(worst.worker).toBeLessThanOrEqual(3);
  });

  it("an edit adds limits to waiting runs, and removes them", async () => {
    const task = await limited({});
    await many(task, [{ key: "x" }, { key: "y" }, {}, {}]);
    const edit = (options: TaskOptions) =>
      stage.task(task.name, { group: task.definition.group, grace: 0, ...options });
    await edit({ rate: { limit: 1, per: "1m" } });
    expect(await begin(task)).toHaveLength(1);
    await edit({ limit: { perKey: 1 } });
    expect(await begin(task), "one of y, one of those without a key").toHaveLength(2);
    await edit({});
    expect(await begin(task)).toHaveLength(1);
    await stage.store.tasks.remove(task.name, change(stage.nowMs));
  });
});
