/** Tests `run.retryIn` and `run.snooze` in a process with the store, in a worker without one, and directly by the worker protocol. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limits } from "../../src/base/limits.ts";
import { type RemoteWorker, worker } from "../../src/library/remote-worker.ts";
import type { Run, RunNotice } from "../../src/run/handler.ts";
import { ownSchema } from "../support/own-schema.ts";
import { RemoteStage } from "../support/remote-stage.ts";
import { everyPostgres, postgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, settlement, until } from "../support/store-stage.ts";

const wait = { timeout: "60s" } as const;
const hourMs = 3_600_000;

describe.each(everyPostgres())("a run that its handler postpones, on $title", ({ url }) => {
  const { schema, database, make } = ownSchema(url, "postponed", { drain: 0 });
  const attempts = async () =>
    (await database.query(`select attempt, outcome, error->>'message' as error from ${schema}.attempt order by fence`))
      .rows;
  const retried = async () =>
    (await database.query(`select sum(retried)::int as n from ${schema}.tally_delta`)).rows[0]?.n ?? 0;

  test("retryIn replaces the back-off, counts as an attempt, and records the cause as the error", async () => {
    const tower = make();
    tower.task("a", { retry: { attempts: 3, delay: "1h", jitter: 0 } }, (run) => {
      throw run.retryIn(run.attempt * 10, { cause: new TypeError(`no ${run.attempt}`) });
    });
    await tower.start();
    await expect((await tower.enqueue("a")).result(wait)).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { message: "no 3" },
    });
    expect(await attempts()).toEqual([
      { attempt: 1, outcome: "failed", error: "no 1" },
      { attempt: 2, outcome: "failed", error: "no 2" },
    ]);
  });

  test("retryIn may exceed the task's delays, and without a cause records the requested delay", async () => {
    const tower = make();
    const retry = { attempts: 2, delay: 1, maxDelay: 10 };
    tower.task("a", { retry }, (run) => Promise.reject(run.retryIn("1h")));
    await tower.start();
    const handle = await tower.enqueue("a");
    await until("its first attempt has ended", async () => (await attempts()).length === 1);
    expect(await attempts()).toEqual([
      { attempt: 1, outcome: "failed", error: "the handler asked for another try in 1h" },
    ]);
    const { dueMs, createdMs } = await handle.status();
    expect(dueMs - createdMs).toBeGreaterThanOrEqual(hourMs);
  });

  test("snooze uses no attempt, keeps key, state and payload, and is not counted as a failure", async () => {
    const tower = make();
    const notices: RunNotice[] = [];
    tower.onRun((notice) => void notices.push(notice));
    const seen: unknown[] = [];
    tower.task("a", { retry: { attempts: 2, delay: 1 } }, async (run, payload: string) => {
      seen.push([run.attempt, run.key, run.state, payload]);
      await run.saveState(run.attempt);
      if (run.attempt <= 3) return run.snooze(5);
      if (run.attempt === 4) throw new Error("no");
      return "done";
    });
    await tower.start();
    const handle = await tower.enqueue("a", "p", { key: "k" });
    expect(await handle.result(wait)).toBe("done");
    expect(seen).toEqual([1, 2, 3, 4, 5].map((n) => [n, "k", n === 1 ? null : n - 1, "p"]));
    expect((await attempts()).map(({ outcome }) => outcome)).toEqual(["snoozed", "snoozed", "snoozed", "failed"]);
    expect(await retried()).toBe(1);
    const ends = notices.filter(({ kind }) => kind !== "started").map(({ kind, outcome }) => [kind, outcome]);
    const off = ["snoozed", null];
    expect(ends).toEqual([off, off, off, ["retry", "failed"], ["ended", "succeeded"]]);
  });

  test("a postponed run keeps its key and its slot, and is neither replaced nor expired", async () => {
    const tower = make();
    const ran: unknown[] = [];
    tower.task("serial", { overlap: "queue" }, (run, payload: number) => {
      ran.push(payload);
      return payload === 1 && run.attempt === 1 ? run.snooze("1h") : payload;
    });
    await tower.start();
    const first = await tower.enqueue("serial", 1, { key: "k", expiresIn: "1s" });
    await until("it is put off", async () => (await attempts()).length === 1);
    const next = await tower.enqueue("serial", 2);
    expect(await tower.enqueue("serial", 3, { key: "k", ifKeyTaken: "replace" })).toMatchObject({
      runId: first.runId,
      created: false,
    });
    const { store } = await tower.open();
    expect(await store.runs.endExpired(Date.now() + hourMs)).toBe(0);
    expect(await next.status()).toMatchObject({ state: "held" });
    expect(await first.status()).toMatchObject({ state: "ready", attempt: 1 });
    expect(await first.cancel()).toBe("cancelled");
    expect(await next.result(wait)).toBe(2);
    expect(ran).toEqual([1, 2]);
  });

  test.each([
    ["a wrong duration", (run: Run) => run.snooze("soon"), "DURATION_INVALID"],
    ["more than a year", (run: Run) => run.retryIn("400d"), "OPTION_INVALID"],
  ])("%s fails the attempt", async (_, act, code) => {
    const tower = make();
    tower.task("a", {}, (run) => act(run));
    await tower.start();
    await expect((await tower.enqueue("a")).result(wait)).rejects.toMatchObject({ cause: { code } });
  });

  test("a run can be snoozed 1,000 times; then its attempts fail, and are retried as its task says", async () => {
    const tower = make();
    tower.task("a", { retry: { attempts: 2, delay: 1 } }, (run) => run.snooze(run.attempt === 1 ? "1h" : 0));
    await tower.start();
    const handle = await tower.enqueue("a");
    await until("it is put off", async () => (await attempts()).length === 1);
    await database.query(`update ${schema}.run set snoozes = $1, attempt = $1, due_ms = $2`, [
      limits.snoozes,
      Date.now(),
    ]);
    await expect(handle.result(wait)).rejects.toMatchObject({ code: "RUN_FAILED", cause: { code: "OPTION_INVALID" } });
    expect((await attempts()).map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, "snoozed"],
      [limits.snoozes + 1, "failed"],
    ]);
  });
});

describe("a snooze in the store", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(postgres());
  });
  afterAll(() => stage.close());

  test("repeated after a lost reply counts once, and a read of the session's claims includes the count", async () => {
    const task = await stage.task("a", { group: "a" });
    const runId = await stage.enqueue(task);
    const session = await stage.session("worker");
    const [run] = await stage.claim(session, [task]);
    const verdict = { kind: "retry", dueMs: stage.nowMs, error: null, inMs: 0, snoozed: true } as const;
    const settled = [settlement(run as never, verdict, stage.nowMs)];
    for (const _ of ["first", "again"])
      expect(await stage.store.claims.settle(session, settled, stage.nowMs)).toEqual(new Set());
    expect(await stage.store.flow.lateResults(runId)).toEqual([]);
    expect(await stage.claim(session, [task])).toMatchObject([{ attempt: 2, snoozes: 1, losses: 0 }]);
    expect(await stage.store.claims.heldBy(session)).toMatchObject([{ attempt: 2, snoozes: 1 }]);
  });
});

describe("a run that a worker without a store postpones", () => {
  const stage = new RemoteStage();
  const workers: RemoteWorker[] = [];
  let key = "";
  beforeAll(async () => {
    await stage.serve();
    key = await stage.key("mine");
    await stage.task("work", { retry: { attempts: 2, delay: "1h", jitter: 0 } });
    await stage.task("raw", { retry: { attempts: 2, delay: "1h", jitter: 0 } });
  });
  afterAll(async () => {
    await Promise.all(workers.map((one) => one.stop()));
    await stage.close();
  });
  const outcomes = async (runId: number) =>
    (await stage.store.runs.attempts(runId)).map(({ attempt, outcome, error }) => [attempt, outcome, error]);

  test("by the library: snooze and retryIn work as in a process with the store", async () => {
    const one = worker({ server: stage.urlOf(), key, handleSignals: false, log: recordingLog().log, drain: "10s" });
    workers.push(
      one.task("work", (run) => {
        if (run.attempt <= 2) return run.snooze(5);
        throw run.retryIn(5, { cause: new RangeError("no") });
      }),
    );
    await one.start();
    const { runId } = await stage.server.enqueue("work");
    await until("it has failed", async () => (await stage.store.runs.find(runId)).endedMs !== null);
    expect(await stage.store.runs.find(runId)).toMatchObject({ state: "failed", attempt: 4, error: { message: "no" } });
    expect(await outcomes(runId)).toEqual([
      [1, "snoozed", null],
      [2, "snoozed", null],
      [3, "failed", expect.objectContaining({ message: "no" })],
    ]);
  });

  test("by the library: lost attempts use no attempt either", async () => {
    const { runId } = await stage.server.enqueue("work", null, { in: "1h" });
    await stage.sql.query(`update ${stage.schema}.run set losses = 2, attempt = 2, due_ms = 1 where id = $1`, [runId]);
    await until("it has failed", async () => (await stage.store.runs.find(runId)).endedMs !== null);
    expect(await stage.store.runs.find(runId)).toMatchObject({ state: "failed", attempt: 4 });
    expect(await outcomes(runId)).toMatchObject([[3, "failed", { message: "no" }]]);
  });

  test("by the protocol: a snooze has a delay and is repeatable, and another verdict on its claim is refused", async () => {
    const { session } = await stage.poll(key, { join: { name: "raw", tasks: ["raw"] } });
    const { runId } = await stage.server.enqueue("raw");
    const given = async (attempt: number) => {
      const [run] = (await stage.poll(key, { session, want: 1, waitMs: 20_000 })).runs;
      expect(run).toMatchObject({ runId, attempt });
      return { runId, fence: run?.fence };
    };
    const first = await given(1);
    for (const wrong of [{ outcome: "snoozed" }, { outcome: "succeeded", retryInMs: 1 }])
      expect(await stage.post(key, { session, verdicts: [{ ...first, ...wrong }] })).toMatchObject({ status: 400 });
    const snoozed = { ...first, outcome: "snoozed", retryInMs: 1 };
    for (const _ of ["first", "again"])
      expect(await stage.poll(key, { session, verdicts: [snoozed] })).toMatchObject({ refused: [] });
    expect(await stage.poll(key, { session, verdicts: [{ ...first, outcome: "succeeded" }] })).toMatchObject({
      refused: [{ part: "verdict", code: "FENCE_STALE" }],
    });
    const failed = { ...(await given(2)), outcome: "failed", error: { message: "no" }, retryInMs: 1 };
    for (const _ of ["first", "again"])
      expect(await stage.poll(key, { session, verdicts: [failed] })).toMatchObject({ refused: [] });
    const last = { ...(await given(3)), outcome: "failed", error: { message: "no" }, retryInMs: 1 };
    await stage.poll(key, { session, verdicts: [last], leave: true });
    expect(await stage.store.runs.find(runId)).toMatchObject({ state: "failed", attempt: 3 });
    expect(await outcomes(runId)).toMatchObject([
      [1, "snoozed", null],
      [2, "failed", { message: "no" }],
    ]);
  });
});
