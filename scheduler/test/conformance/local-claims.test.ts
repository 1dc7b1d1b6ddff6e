import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, LocalClaims } from "../../src/run/claim-store.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { StoreProxy } from "../support/proxy.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

/** Returns an offer of a worker's free slots, and an object that records what becomes of it. */
function offerOf(stage: Stage, sessionId: number, tasks: TaskRecord[], room = 100) {
  const claimed: ClaimedRun[] = [];
  const seen = { readyMs: Number.POSITIVE_INFINITY, lost: 0 };
  const local: LocalClaims = {
    sessionId,
    groupIds: tasks.map(({ groupId }) => groupId),
    untilMs: stage.nowMs,
    room,
    made(runs, readyMs) {
      claimed.push(...runs);
      seen.readyMs = Math.min(seen.readyMs, readyMs);
    },
    lost: () => void seen.lost++,
  };
  return { local, claimed, seen };
}

describe.each(everyPostgres())("runs enqueued as local claims of this process on $title", (server) => {
  let stage: Stage;
  let worker = 0;
  beforeAll(async () => {
    stage = await openStage(server);
    worker = await stage.session("worker");
  });
  afterAll(() => stage.close());

  const states = async (runIds: number[]) => {
    const rows = await stage.rows<{ id: number; state: number }>("select id, state from $s.run where id = any($1)", [
      runIds,
    ]);
    return runIds.map((runId) => rows.find(({ id }) => id === runId)?.state ?? null);
  };
  const [held, paused, ready, claimed] = [0, 1, 2, 3];

  it("belong to the session, end like any claim, and cannot be claimed by another worker", async () => {
    const task = await stage.task("plain");
    const offer = offerOf(stage, worker, [task]);
    const writes = [stage.write(task, { payload: '{"a":1}', key: "k", priority: 7 }), stage.write(task)];
    const made = await stage.store.runs.enqueue(writes, stage.nowMs, offer.local);
    expect(made.map(({ created }) => created)).toEqual([true, true]);
    expect(offer.claimed).toMatchObject([
      {
        runId: made[0]?.runId,
        key: "k",
        priority: 7,
        payload: { a: 1 },
        attempt: 1,
        dueMs: stage.nowMs,
        linked: false,
      },
      { runId: made[1]?.runId, key: null, priority: task.definition.priority, payload: null, attempt: 1 },
    ]);
    expect(offer.seen).toEqual({ readyMs: Number.POSITIVE_INFINITY, lost: 0 });
    const book = await stage.store.claims.heldBy(worker);
    expect(book.toSorted((a, b) => a.runId - b.runId)).toMatchObject(offer.claimed);
    expect(await stage.claim(await stage.session("worker"), [task])).toEqual([]);
    const again = await stage.store.runs.enqueue([stage.write(task, { key: "k" })], stage.nowMs, offer.local);
    expect(again).toEqual([{ runId: made[0]?.runId, created: false }]);
    const ends = offer.claimed.map((run) => settlement(run, succeededVerdict, stage.nowMs));
    expect(await stage.store.claims.settle(worker, ends, stage.nowMs)).toEqual(new Set());
    expect(await stage.store.runs.find(made[0]?.runId as number)).toMatchObject({ state: "succeeded", attempt: 1 });
  });

  it("are not affected by an operation that began before them, whatever run numbers were reserved", async () => {
    const task = await stage.task("bounded");
    const before = await stage.enqueue(task);
    const filter = { task: "bounded" };
    const asked = { kind: "cancel" as const, filter, author: "test", reason: "because" };
    const id = await stage.store.operations.begin(asked, "bounded", stage.nowMs);
    const offer = offerOf(stage, worker, [task]);
    const made = await stage.store.runs.enqueue([stage.write(task), stage.write(task)], stage.nowMs, offer.local);
    expect(offer.claimed.map(({ runId }) => runId)).toEqual(made.map(({ runId }) => runId));
    while ((await stage.store.operations.step(stage.nowMs, id)).stepped !== null);
    expect(await stage.store.operations.find(id)).toMatchObject({ state: "done", total: 1, done: 1 });
    expect(await states([before, ...made.map(({ runId }) => runId)])).toEqual([null, claimed, claimed]);
    const ends = offer.claimed.map((run) => settlement(run, succeededVerdict, stage.nowMs));
    expect(await stage.store.claims.settle(worker, ends, stage.nowMs)).toEqual(new Set());
  });

  it("are made only up to the free capacity, and only for due, plain runs of these groups", async () => {
    const task = await stage.task("roomy");
    const serial = await stage.task("serial", { overlap: "queue" });
    const elsewhere = await stage.task("elsewhere", { group: "elsewhere" });
    const pinned = await stage.task("routed", { route: "random" });
    const stopped = await stage.task("stopped");
    await stage.store.tasks.pause("stopped", change(stage.nowMs));
    const limited = await stage.task("limited", { group: "limited" });
    await stage.store.groups.limit("limited", 1, change(stage.nowMs));
    const offer = offerOf(stage, worker, [task, serial, pinned, stopped, limited], 6);
    const writes = [
      stage.write(task),
      stage.write(task, { dueMs: stage.nowMs + 60_000 }),
      stage.write(serial),
      stage.write(elsewhere),
      stage.write(pinned),
      stage.write(task),
      stage.write(task),
      stage.write(stopped),
      stage.write(limited),
    ];
    const made = await stage.store.runs.enqueue(writes, stage.nowMs, offer.local);
    const runIds = made.map(({ runId }) => runId);
    // No other run of the task with a limit of one was live, so its first run was ready at once.
    expect(await states(runIds)).toEqual([claimed, ready, ready, ready, ready, claimed, ready, paused, ready]);
    expect(offer.claimed.map(({ runId }) => runId)).toEqual([runIds[0], runIds[5]]);
    expect(offer.seen.readyMs).toBe(stage.nowMs);
    const second = await stage.store.runs.enqueue([stage.write(serial)], stage.nowMs, offer.local);
    expect(await states(second.map(({ runId }) => runId))).toEqual([held]);
  });

  it("are the same when enqueued singly", async () => {
    const task = await stage.task("single", { priority: 3 });
    const serial = await stage.task("single-serial", { overlap: "queue" });
    const elsewhere = await stage.task("single-elsewhere", { group: "single-elsewhere" });
    const pinned = await stage.task("single-routed", { route: "random" });
    const stopped = await stage.task("single-stopped");
    await stage.store.tasks.pause("single-stopped", change(stage.nowMs));
    const limited = await stage.task("single-limited", { group: "single-limited" });
    await stage.store.groups.limit("single-limited", 1, change(stage.nowMs));
    const offer = offerOf(stage, worker, [task, serial, pinned, stopped, limited]);
    const one = async (write: ReturnType<typeof stage.write>) => {
      const [made] = await stage.store.runs.enqueue([write], stage.nowMs, offer.local);
      return made?.runId as number;
    };
    const plain = await one(stage.write(task, { payload: '{"a":1}' }));
    expect(offer.claimed).toMatchObject([{ runId: plain, payload: { a: 1 }, priority: 3, attempt: 1, linked: false }]);
    expect(await stage.store.claims.heldBy(worker)).toMatchObject(
      expect.arrayContaining([expect.objectContaining({ runId: plain, payload: { a: 1 } })]),
    );
    expect(offer.seen.readyMs).toBe(Number.POSITIVE_INFINITY);
    const others: number[] = [];
    for (const write of [
      stage.write(task, { dueMs: stage.nowMs + 60_000 }),
      ...[serial, elsewhere, pinned, stopped, limited].map((other) => stage.write(other)),
    ])
      others.push(await one(write));
    expect(await states(others)).toEqual([ready, ready, ready, ready, paused, ready]);
    expect(offer.claimed).toHaveLength(1);
    expect(offer.seen.readyMs).toBe(stage.nowMs);

    const asked = { kind: "cancel" as const, filter: { task: "single" }, author: "test", reason: "because" };
    await stage.store.operations.begin(asked, "single", stage.nowMs);
    const after = await one(stage.write(task));
    expect(offer.claimed[1]).toMatchObject({ runId: after });
    while ((await stage.store.operations.step(stage.nowMs)).stepped !== null);
    expect(await stage.rows("select recall from $s.run where id = $1", [after])).toEqual([{ recall: 0 }]);
    const ends = offer.claimed.map((run) => settlement(run, succeededVerdict, stage.nowMs));
    await stage.store.claims.settle(worker, ends, stage.nowMs);

    await stage.store.tasks.remove("single", change(stage.nowMs));
    await expect(one(stage.write(task))).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
  });

  it("are left to other workers if the session has ended", async () => {
    const task = await stage.task("orphan");
    const gone = await stage.session("worker");
    await stage.store.sessions.end(gone, null, stage.nowMs, "test");
    const offer = offerOf(stage, gone, [task]);
    const [made] = await stage.store.runs.enqueue([stage.write(task)], stage.nowMs, offer.local);
    expect(offer.claimed).toEqual([]);
    expect((await stage.claim(worker, [task])).map(({ runId }) => runId)).toContain(made?.runId);
  });

  it("are marked as having followers", async () => {
    const task = await stage.task("followed");
    await stage.task("follower", { after: "followed" });
    const offer = offerOf(stage, worker, [task]);
    await stage.store.runs.enqueue([stage.write(task)], stage.nowMs, offer.local);
    expect(offer.claimed).toMatchObject([{ linked: true }]);
  });

  it("are not made while another transaction stops or edits the task; afterwards none is missed", async () => {
    const task = await stage.task("contended");
    const client = await stage.sql.connect();
    try {
      await client.query("begin");
      await client.query(`update ${stage.schema}.plan set paused = true where task_id = $1`, [task.taskId]);
      const offer = offerOf(stage, worker, [task]);
      const [made] = await stage.store.runs.enqueue([stage.write(task)], stage.nowMs, offer.local);
      expect(offer.claimed).toEqual([]);
      expect(await states([made?.runId as number])).toEqual([ready]);
    } finally {
      await client.query("rollback");
      client.release();
    }
    // Pauses and enqueues race. After the pause, either the claim has been recalled or no claim was made.
    for (let round = 0; round < 20; round++) {
      const offer = offerOf(stage, worker, [task]);
      const [, { recalled }] = await Promise.all([
        stage.store.runs.enqueue([stage.write(task)], stage.nowMs, offer.local),
        stage.store.tasks.pause("contended", change(stage.nowMs)),
      ]);
      for (const { runId } of offer.claimed) expect(recalled).toContain(runId);
      await stage.store.tasks.resume("contended", change(stage.nowMs));
      const ends = offer.claimed.map((run) => settlement(run, succeededVerdict, stage.nowMs));
      await stage.store.claims.settle(worker, ends, stage.nowMs);
    }
  });

  it("whose reply is lost belong to the session once, and the worker is signalled to sync its claims", async () => {
    const task = await stage.task("lossy");
    const proxy = await StoreProxy.before(server.url);
    const store = await openPostgres({ url: proxy.url, schema: stage.schema });
    try {
      const offer = offerOf(stage, worker, [task]);
      proxy.swallowReply((reply) => reply.includes("linked"));
      const [made] = await store.runs.enqueue([stage.write(task)], stage.nowMs, offer.local);
      expect(made).toMatchObject({ created: true });
      expect(proxy.swallowed).toBe(1);
      expect(offer.claimed).toEqual([]);
      expect(offer.seen.lost).toBe(1);
      const book = await stage.store.claims.heldBy(worker);
      expect(book.filter(({ taskId }) => taskId === task.taskId)).toMatchObject([{ runId: made?.runId, attempt: 1 }]);
    } finally {
      await store.close();
      await proxy.close();
    }
  });
});
