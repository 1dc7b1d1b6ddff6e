import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { StoreProxy } from "../support/proxy.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, settlement, succeededVerdict, until } from "../support/store-stage.ts";

const failedVerdict: Verdict = { kind: "ended", outcome: "failed", result: null, error: '{"message":"no"}' };
const failures = { history: "failures" as const };

describe.each(everyPostgres())("a task with history: failures, on $title", (server) => {
  let stage: Stage;
  let proxy: StoreProxy;
  /** The store, reached through the proxy. */
  let store: Store;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
    proxy = await StoreProxy.before(server.url);
    store = await openPostgres({ url: proxy.url, schema: stage.schema, log: recordingLog().log, connectionsMax: 2 });
  });
  afterAll(async () => {
    proxy.heal();
    await store.close();
    await proxy.close();
    await stage.close();
  });

  let groups = 0;
  const alone = (name: string, options = {}) => stage.task(name, { group: `g${++groups}`, ...failures, ...options });
  async function claimed(task: TaskRecord, count = 1): Promise<ClaimedRun[]> {
    const writes = Array.from({ length: count }, () => stage.write(task));
    await stage.store.runs.enqueue(writes, stage.nowMs);
    return stage.claim(session, [task]);
  }
  /** Returns a settlement as a worker sends it: the worker knows from the task's definition that successes are not kept in the history. */
  const unkept = (run: ClaimedRun, verdict: Verdict) => ({ ...settlement(run, verdict, stage.nowMs), unkept: true });
  const settle = (runs: ClaimedRun[], verdict: Verdict, by: Store = stage.store) =>
    by.claims.settle(
      session,
      runs.map((run) => unkept(run, verdict)),
      stage.nowMs,
    );
  const counters = async (task: TaskRecord) => (await stage.store.tasks.counters([task.taskId])).get(task.taskId);
  const rows = async (task: TaskRecord) =>
    (await stage.rows<{ outcome: number }>("select outcome from $s.run_history where task_id = $1", [task.taskId])).map(
      ({ outcome }) => outcome,
    );
  const late = async (run: ClaimedRun) =>
    (await stage.rows("select from $s.late_result where run_id = $1", [run.runId])).length;

  it("counts every end, and keeps rows of runs that did not succeed, alongside tasks that keep all rows", async () => {
    const [task, whole] = [await alone("mixed"), await alone("whole", { history: "all" })];
    const [runs, others] = [await claimed(task, 30), await claimed(whole, 5)];
    const batch = [
      ...runs.map((run, i) => unkept(run, i % 3 === 0 ? failedVerdict : succeededVerdict)),
      ...others.map((run) => settlement(run, succeededVerdict, stage.nowMs)),
    ];
    expect(await stage.store.claims.settle(session, batch, stage.nowMs)).toEqual(new Set());
    expect(await rows(task)).toEqual(Array(10).fill(1));
    expect(await rows(whole)).toEqual(Array(5).fill(0));
    expect(await counters(task)).toMatchObject({ succeeded: 20, failed: 10 });
    expect(await stage.store.deadLetters.letters({ task: "mixed" }, 100)).toHaveLength(10);
    await expect(stage.store.runs.find(runs[1]?.runId as number)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
  });

  it("recognises a verdict that was already applied, and refuses one that came too late", async () => {
    const task = await alone("late");
    const [run] = (await claimed(task)) as [ClaimedRun];
    await stage.rows("update $s.run set fence = nextval('$s.fence') where id = $1", [run.runId]);
    expect(await settle([run], succeededVerdict), "under an old fence").toEqual(new Set([run.fence]));
    expect(await late(run)).toBe(1);
    const [newer] = (await stage.store.claims.heldBy(session)).filter(({ taskId }) => taskId === task.taskId);
    expect(await settle([newer as ClaimedRun], succeededVerdict)).toEqual(new Set());
    expect(await settle([newer as ClaimedRun], succeededVerdict), "the same again").toEqual(new Set());
    expect(await settle([run], succeededVerdict), "the old one again").toEqual(new Set([run.fence]));
    expect(await settle([newer as ClaimedRun], failedVerdict), "another word").toEqual(new Set([newer?.fence]));
    expect(await counters(task)).toMatchObject({ succeeded: 1, failed: 0 });
  });

  it.each(["allow", "queue"] as const)(
    "settles exactly once if the reply is lost after the commit (overlap %s)",
    async (overlap) => {
      const task = await alone(`settle-${overlap}`, { overlap });
      const [run] = (await claimed(task)) as [ClaimedRun];
      if (overlap === "queue") proxy.swallowCommit();
      else proxy.swallowReply((reply) => reply.toString("latin1").includes("fence"));
      const before = proxy.swallowed;
      expect(await settle([run], succeededVerdict, store)).toEqual(new Set());
      expect(proxy.swallowed).toBe(before + 1);
      expect(await counters(task)).toMatchObject({ succeeded: 1 });
      expect([await rows(task), await late(run)]).toEqual([[], 0]);
    },
  );

  it("makes no second run if the first one ended before its enqueue was answered", async () => {
    const task = await alone("enqueue");
    const before = proxy.swallowed;
    proxy.swallowReply((reply) => reply.toString("latin1").includes("made"), { thenRefuse: true });
    const asked = store.runs.enqueue([stage.write(task)], stage.nowMs);
    await until("the reply to be swallowed", () => proxy.swallowed > before);
    const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
    await settle([run], succeededVerdict);
    proxy.heal();
    expect(await asked).toEqual([{ runId: run.runId, created: true }]);
    expect(await stage.rows("select from $s.run where task_id = $1", [task.taskId])).toEqual([]);
    expect(await counters(task)).toMatchObject({ succeeded: 1 });
  });

  it("frees the slot and the key of an ended run for the next run", async () => {
    const task = await alone("places", { overlap: "queue" });
    const [first] = [await stage.enqueue(task, { key: "k" }), await stage.enqueue(task)];
    const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
    expect(run.runId).toBe(first);
    await settle([run], succeededVerdict);
    expect(await stage.claim(session, [task])).toHaveLength(1);
    expect(await stage.enqueue(task, { key: "k" })).not.toBe(first);
    expect(await rows(task)).toEqual([]);
  });

  it("keeps the row of a run that gained a follower after its claim, in a batch with runs that leave no row", async () => {
    const [task, alike] = [await alone("followed-meanwhile"), await alone("not-followed")];
    const runs = [...(await claimed(task, 2)), ...(await claimed(alike, 3))];
    expect(runs.map(({ linked }) => linked)).toEqual(Array(5).fill(false));
    await stage.rows("insert into $s.follow (upstream_id, task_id, ends, several) values ($1, $2, 1, false)", [
      task.taskId,
      alike.taskId,
    ]);
    expect(await settle(runs, succeededVerdict)).toEqual(new Set());
    expect([await rows(task), await rows(alike)]).toEqual([[0, 0], []]);
    expect(await counters(task)).toMatchObject({ succeeded: 2 });
    expect(await counters(alike)).toMatchObject({ succeeded: 3 });
    const traced = await stage.rows<{ id: number; fence: number }>(
      "select u.id, u.fence from $s.run_trace t, unnest(t.run_ids, t.fences) as u (id, fence) where u.id = any($1) order by id",
      [runs.map(({ runId }) => runId)],
    );
    expect(traced).toEqual(runs.map(({ runId, fence }) => ({ id: runId, fence })));
  });

  it("keeps rows that other runs read: of a task with followers, and of a run completed in the caller's transaction", async () => {
    const task = await alone("upstream");
    const after = await stage.task("downstream", { group: `g${++groups}`, after: "upstream" });
    const [run] = (await claimed(task)) as [ClaimedRun];
    await settle([run], { ...succeededVerdict, result: '{"n":7}' } as Verdict);
    expect(await rows(task)).toEqual([0]);
    const [next] = (await stage.claim(session, [after])) as [ClaimedRun];
    expect(await stage.store.flow.inputs({ runId: next.runId })).toMatchObject([{ result: { n: 7 } }]);

    const own = await alone("own-transaction");
    const [held] = (await claimed(own)) as [ClaimedRun];
    const client = await stage.sql.connect();
    try {
      await client.query("begin");
      expect(await stage.store.claims.settleIn(client, session, unkept(held, succeededVerdict), stage.nowMs)).toBe(
        true,
      );
      await client.query("commit");
    } finally {
      client.release();
    }
    expect(await settle([held], succeededVerdict), "the worker's own word, later").toEqual(new Set());
    expect(await rows(own)).toEqual([0]);
  });
});
