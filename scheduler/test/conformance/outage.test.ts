import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import { every } from "../../src/schedule/schedule.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import { StoreProxy } from "../support/proxy.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, settlement, succeededVerdict, until } from "../support/store-stage.ts";

/** Returns the largest number of attempts that a waiting enqueue can make within this time. */
function mostTries(withinMs: number): number {
  let tries = 1;
  let pauseMs = 50;
  for (let atMs = 0; ; pauseMs = Math.min(2 * pauseMs, 2_000)) {
    atMs += pauseMs / 2 - 1; // a timer may fire one ms early
    if (atMs > withinMs) return tries;
    tries++;
  }
}

describe.each(everyPostgres())("an unreachable store, on $title", (server) => {
  let stage: Stage;
  let proxy: StoreProxy;
  let store: Store;
  let session: number;
  const { log, lines } = recordingLog();
  const said = (text: string) =>
    lines.filter(({ level, message }) => level !== "debug" && message.includes(text)).length;

  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
    proxy = await StoreProxy.before(server.url);
    store = await openPostgres({ url: proxy.url, schema: stage.schema, log, connectionsMax: 2 });
  });
  afterAll(async () => {
    proxy.heal();
    await store.close();
    await proxy.close();
    await stage.close();
  });

  let groups = 0;
  const alone = (name: string, options = {}) => stage.task(name, { group: `g${++groups}`, ...options });
  const live = async (taskId: number) =>
    (await stage.one("select count(*) as n from $s.run where task_id = $1", [taskId])).n;
  const ended = async (taskId: number) =>
    (await stage.one("select count(*) as n from $s.run_history where task_id = $1", [taskId])).n;

  it("enqueues exactly once if the reply is lost after the commit", async () => {
    const task = await alone("enqueue");
    for (const overlap of ["allow", "queue"] as const) {
      const one = await alone(`enqueue-${overlap}`, { overlap });
      proxy.swallowReply((reply) => /made|created/.test(reply.toString("latin1")));
      const before = proxy.swallowed;
      const answers = await store.runs.enqueue([stage.write(one), stage.write(one, { key: "k" })], stage.nowMs);
      expect(proxy.swallowed, "a reply was swallowed").toBe(before + 1);
      expect(answers.map(({ created }) => created)).toEqual([true, true]);
      expect(await live(one.taskId)).toBe(2);
    }
    proxy.swallowReply((reply) => /made|created/.test(reply.toString("latin1")));
    const batch = await store.runs.enqueue(
      Array.from({ length: 500 }, () => stage.write(task)),
      stage.nowMs,
    );
    expect(new Set(batch.map(({ runId }) => runId)).size).toBe(500);
    expect(await live(task.taskId)).toBe(500);
  });

  it.each(["allow", "queue"] as const)(
    "settles exactly once if the reply is lost after the commit (overlap %s)",
    async (overlap) => {
      const task = await alone(`settle-${overlap}`, { overlap });
      await stage.enqueue(task);
      const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
      if (overlap === "queue") proxy.swallowCommit();
      else proxy.swallowReply((reply) => reply.toString("latin1").includes("fence"));
      const before = proxy.swallowed;
      expect(await store.claims.settle(session, [settlement(run, succeededVerdict, stage.nowMs)], stage.nowMs)).toEqual(
        new Set(),
      );
      expect(proxy.swallowed).toBe(before + 1);
      expect(await ended(task.taskId)).toBe(1);
      expect((await stage.store.tasks.counters([task.taskId])).get(task.taskId)).toMatchObject({ succeeded: 1 });
      expect(await stage.rows("select from $s.late_result where run_id = $1", [run.runId])).toEqual([]);
    },
  );

  it("retries exactly once if the reply is lost after the commit", async () => {
    const task = await alone("retry");
    await stage.enqueue(task);
    const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
    proxy.swallowReply((reply) => reply.toString("latin1").includes("fence"));
    const verdict = { kind: "retry" as const, dueMs: stage.nowMs, error: null };
    expect(await store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs)).toEqual(new Set());
    expect(await stage.store.runs.attempts(run.runId)).toHaveLength(1);
    expect((await stage.claim(session, [task])).map(({ attempt }) => attempt)).toEqual([2]);
  });

  it("accepts exactly once: the planner gets STORE_UNREACHABLE, and its next attempt finds the step taken", async () => {
    for (const overlap of ["allow", "queue"] as const) {
      const task = await alone(`accept-${overlap}`, { schedule: every("1s"), overlap });
      const writes = await stage.steps([task], stage.nowMs + 3_000);
      if (overlap === "queue") proxy.swallowCommit();
      else proxy.swallowReply((reply) => reply.toString("latin1").includes("authority"));
      const authority = { sessionId: session, term: null };
      await expect(store.plans.accept(authority, writes, stage.nowMs)).rejects.toMatchObject({
        code: "STORE_UNREACHABLE",
      });
      expect(await store.plans.accept(authority, writes, stage.nowMs)).toEqual({ taken: new Set(), accepted: 0 });
      expect(await live(task.taskId)).toBe(3);
    }
  });

  it("recovers its claims if the reply to a claim was lost", async () => {
    const task = await alone("claim");
    const mine = await stage.session("worker");
    await stage.enqueue(task);
    proxy.swallowReply((reply) => reply.toString("latin1").includes("runId"));
    const request = {
      sessionId: mine,
      groupIds: [task.groupId],
      exceptTaskIds: [],
      untilMs: stage.nowMs,
      limit: 5,
      nowMs: stage.nowMs,
    };
    await expect(store.claims.claim(request)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    expect(await store.claims.heldBy(mine)).toMatchObject([{ taskId: task.taskId, attempt: 1 }]);
  });

  it("waits through an outage, logs its start and its end once, and loses nothing", async () => {
    const task = await alone("outage");
    await stage.store.runs.enqueue(
      Array.from({ length: 20 }, () => stage.write(task)),
      stage.nowMs,
    );
    const runs = await stage.claim(session, [task]);
    const [away, back, attempts] = [said("the store is away"), said("the store is back"), proxy.connections];
    const began = performance.now();
    proxy.cut({ refuse: true });
    const settling = runs.map((run) =>
      store.claims.settle(session, [settlement(run, succeededVerdict, stage.nowMs)], stage.nowMs),
    );
    const enqueueing = store.runs.enqueue([stage.write(task)], stage.nowMs);
    await until("several tries of each", () => proxy.connections > attempts + 4 * 21);
    const tried = proxy.connections - attempts;
    // Each of the 21 waiting calls pauses for 50 ms and then twice as long each time, less at most half by jitter. That limits the
    // attempts.
    expect(tried).toBeLessThanOrEqual(21 * mostTries(performance.now() - began));
    expect(said("the store is away"), "said once, however many wait").toBe(away + 1);
    expect(said("the store is back")).toBe(back);
    proxy.heal();
    for (const answer of await Promise.all(settling)) expect(answer).toEqual(new Set());
    expect(await enqueueing).toMatchObject([{ created: true }]);
    expect(said("the store is back")).toBe(back + 1);
    expect(await ended(task.taskId)).toBe(20);
    expect(await live(task.taskId)).toBe(1);
  });

  it("rejects calls that cannot be repeated at once, and works again as soon as the store does", async () => {
    proxy.cut({ refuse: true });
    await expect(store.sessions.beat(session, stage.nowMs)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    proxy.heal();
    expect((await store.sessions.beat(session, stage.nowMs)).alive).toBe(true);
  });

  it("ends a hanging statement when its connection finally ends", async () => {
    proxy.hang();
    let answered = false;
    const beat = store.sessions.beat(session, stage.nowMs).finally(() => {
      answered = true;
    });
    const told = expect(beat).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    // The proxy passes nothing on, so no reply arrives, even though the store itself answers at once.
    await stage.store.sessions.members();
    expect(answered).toBe(false);
    proxy.heal();
    await told;
    expect((await store.sessions.beat(session, stage.nowMs)).alive).toBe(true);
  });
});
