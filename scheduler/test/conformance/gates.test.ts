import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seeded } from "../../src/base/random.ts";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import { every } from "../../src/schedule/schedule.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

describe.each(everyPostgres())("concurrency slots on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  let groups = 0;
  const gated = (name: string, overlap: NonNullable<TaskOptions["overlap"]>, options: TaskOptions = {}) =>
    stage.task(name, { group: `g${++groups}`, overlap, grace: 0, ...options });
  const end = (run: ClaimedRun, verdict: Verdict = succeededVerdict, nowMs = stage.nowMs) =>
    stage.store.claims.settle(session, [settlement(run, verdict, nowMs)], nowMs);
  const states = async (...runIds: number[]) =>
    Promise.all(runIds.map(async (runId) => (await stage.store.runs.find(runId)).state));
  const one = async (task: TaskRecord, untilMs = stage.nowMs) => {
    const runs = await stage.claim(session, [task], untilMs);
    expect(runs).toHaveLength(1);
    return runs[0] as ClaimedRun;
  };

  it("queue: the next run begins when the previous one has ended, in due order, whatever the outcome", async () => {
    const task = await gated("queue", "queue");
    const runs: number[] = [];
    for (let i = 0; i < 6; i++) runs.push(await stage.enqueue(task, { dueMs: stage.nowMs - 10 + i }));
    const ways: Verdict[] = [
      succeededVerdict,
      { kind: "ended", outcome: "failed", result: null, error: null },
      { kind: "ended", outcome: "cancelled", result: null, error: null },
    ];
    const taken: number[] = [];
    for (const verdict of ways) {
      const run = await one(task);
      taken.push(run.runId);
      await end(run, verdict);
    }
    // A run that is cancelled before it was claimed, and one whose worker dies, also free their places in the task's limit.
    const [fourth] = await states(runs[3] as number);
    expect(fourth).toBe("ready");
    expect(await stage.store.runs.cancel(runs[3] as number, "", stage.nowMs)).toBe("cancelled");
    const dying = await stage.session("worker");
    const [lost] = (await stage.claim(dying, [await stage.store.tasks.byName("queue")])) as [ClaimedRun];
    expect(lost.runId).toBe(runs[4]);
    await stage.store.tasks.save({ ...task.definition, onWorkerLost: "fail" }, null, change(stage.nowMs));
    await stage.store.sessions.end(dying, null, stage.nowMs, "silent");
    await stage.store.claims.reclaim(dying, 0, stage.nowMs, 10);
    expect((await one(task)).runId).toBe(runs[5]);
    expect(taken).toEqual(runs.slice(0, 3));
  });

  it("queue: a run between two attempts keeps its slot", async () => {
    const task = await gated("keeps-place", "queue");
    const first = await stage.enqueue(task);
    const second = await stage.enqueue(task);
    await end(await one(task), { kind: "retry", dueMs: stage.nowMs + 5_000, error: null });
    expect(await states(first, second)).toEqual(["ready", "held"]);
    await stage.store.plans.admitHeld(stage.nowMs + 1, stage.nowMs + 1);
    expect(await states(first, second)).toEqual(["ready", "held"]);
    await end(await one(task, stage.nowMs + 5_000));
    expect(await states(second)).toEqual(["ready"]);
  });

  it("allow n: no more than n runs at once, and edits of n take effect", async () => {
    const task = await gated("allow-3", { allow: 3 });
    for (let i = 0; i < 10; i++) await stage.enqueue(task);
    const runs = await stage.claim(session, [task]);
    expect(runs).toHaveLength(3);
    await end(runs[0] as ClaimedRun);
    expect(await stage.claim(session, [task])).toHaveLength(1);
    await stage.task("allow-3", { ...options(task), overlap: { allow: 5 } });
    expect(await stage.claim(session, [task]), "raised to 5").toHaveLength(2);
    for (const run of await stage.store.claims.heldBy(session)) if (run.taskId === task.taskId) await end(run);
    await stage.task("allow-3", { ...options(task), overlap: { allow: 1 } });
    expect(await stage.claim(session, [task]), "lowered to 1").toHaveLength(1);
  });

  it("a task changed to queue holds its waiting runs back, and frees slots when its earlier runs end", async () => {
    const task = await stage.task("made-queue", { group: `g${++groups}` });
    const running = [await stage.enqueue(task), await stage.enqueue(task)];
    const claims = await stage.claim(session, [task]);
    const waiting = [await stage.enqueue(task), await stage.enqueue(task)];
    await stage.task("made-queue", { ...options(task), overlap: "queue" });
    expect(await states(...waiting)).toEqual(["held", "held"]);
    for (const run of claims) await end(run);
    expect(await states(...running)).toEqual(["succeeded", "succeeded"]);
    expect(await states(...waiting), "no run waits while a place is free").toEqual(["ready", "held"]);
  });

  it("skip: runs that come due while the slot is taken are skipped, also in the ledger and the counters", async () => {
    const task = await gated("skip", "skip", { schedule: every("1s") });
    await stage.plan([task], session, stage.nowMs + 3_000);
    const slots = await stage.rows<Row>("select slot_ms, run_id from $s.slot where task_id = $1 order by 1", [
      task.taskId,
    ]);
    const [first, second, third] = slots as [Row, Row, Row];
    const run = await one(task, first.slot_ms);
    expect(run.runId).toBe(first.run_id);
    // The second run is not due yet, so the overlap policy has not been applied to it.
    await stage.store.plans.admitHeld(second.slot_ms - 1, second.slot_ms - 1);
    expect(await states(second.run_id, third.run_id)).toEqual(["held", "held"]);
    expect(await stage.store.plans.admitHeld(second.slot_ms, second.slot_ms)).toBe(third.slot_ms);
    expect(await states(second.run_id, third.run_id)).toEqual(["skipped", "held"]);
    await end(run, succeededVerdict, second.slot_ms + 1);
    expect(await states(third.run_id)).toEqual(["ready"]);
    const ledger = await stage.store.history.slots(task.taskId, 0, third.slot_ms, 10);
    expect(ledger.slots.map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ["run", null],
      ["skipped", "overlap: skip"],
      ["run", null],
    ]);
    expect((await stage.store.tasks.counters([task.taskId])).get(task.taskId)).toMatchObject({
      skipped: 1,
      succeeded: 1,
    });
  });

  it("skip: a run that came due unprocessed while the slot was taken is skipped when the slot is freed", async () => {
    const task = await gated("skip-unseen", "skip");
    const running = await stage.enqueue(task);
    const run = await one(task);
    const due = await stage.enqueue(task, { dueMs: stage.nowMs + 10 });
    await end(run, succeededVerdict, stage.nowMs + 20);
    expect(await states(running, due)).toEqual(["succeeded", "skipped"]);
  });

  it("skip: a run that was attempted waits during a pause and is retried, alongside later enqueues", async () => {
    const task = await gated("skip-tried", "skip");
    const tried = await stage.enqueue(task);
    await end(await one(task), { kind: "retry", dueMs: stage.nowMs + 5_000, error: null });
    await stage.store.tasks.pause("skip-tried", change(stage.nowMs));
    const newer = await stage.enqueue(task);
    await stage.store.tasks.resume("skip-tried", change(stage.nowMs + 6_000));
    const begun = new Set<number>();
    for (let more = true; more; ) {
      const runs = await stage.claim(session, [task], stage.nowMs + 6_000);
      for (const run of runs) {
        begun.add(run.runId);
        await end(run, succeededVerdict, stage.nowMs + 6_000);
      }
      more = runs.length > 0;
    }
    expect(await states(tried)).toEqual(["succeeded"]);
    expect(begun.has(tried)).toBe(true);
    expect(["succeeded", "skipped"]).toContain((await states(newer))[0]);
  });

  it("replace: a run that was attempted and waits for a slot is cancelled, not skipped, for a newer one", async () => {
    const task = await gated("replace-tried", "replace");
    const tried = await stage.enqueue(task);
    await end(await one(task), { kind: "retry", dueMs: stage.nowMs + 1, error: null });
    await stage.store.tasks.pause("replace-tried", change(stage.nowMs));
    const newer = await stage.enqueue(task, { dueMs: stage.nowMs + 2 });
    await stage.store.tasks.resume("replace-tried", change(stage.nowMs + 6_000));
    expect(await states(tried, newer)).toEqual(["cancelled", "ready"]);
  });

  it("replace: asks the running run to end, and only the newest run takes its slot", async () => {
    const task = await gated("replace", "replace");
    const old = await stage.enqueue(task);
    const run = await one(task);
    const middle = await stage.enqueue(task, { dueMs: stage.nowMs + 1 }, stage.nowMs + 1);
    const newest = await stage.enqueue(task, { dueMs: stage.nowMs + 2 }, stage.nowMs + 2);
    expect(await states(old, middle, newest)).toEqual(["claimed", "skipped", "held"]);
    expect(await stage.store.claims.recalls(session)).toMatchObject([
      { runId: old, kind: "cancel", why: "overlap: replaced by a newer run" },
    ]);
    await end(run, { kind: "ended", outcome: "cancelled", result: null, error: null }, stage.nowMs + 3);
    expect(await states(old, newest)).toEqual(["cancelled", "ready"]);
  });

  it("replace: a run that waits between two attempts ends too, and its slot goes to the newer run at once", async () => {
    const task = await gated("replace-waiting", "replace", { schedule: every("1s"), retry: 5 });
    await stage.plan([task], session, stage.nowMs + 3_000);
    const slots = await stage.rows<Row>("select slot_ms, run_id from $s.slot where task_id = $1 order by 1", [
      task.taskId,
    ]);
    const [first, second, third] = slots as [Row, Row, Row];
    const failed: Verdict = { kind: "retry", dueMs: third.slot_ms + 60_000, error: null };
    await end(await one(task, first.slot_ms), failed, first.slot_ms);
    await stage.store.plans.admitHeld(second.slot_ms - 1, second.slot_ms - 1);
    expect(await states(first.run_id, second.run_id), "nothing newer is due").toEqual(["ready", "held"]);
    await stage.store.plans.admitHeld(second.slot_ms, second.slot_ms);
    expect(await states(first.run_id, second.run_id, third.run_id)).toEqual(["cancelled", "ready", "held"]);
    expect(await stage.store.runs.find(first.run_id)).toMatchObject({
      attempt: 1,
      endedMs: second.slot_ms,
      error: { code: "CANCELLED", message: "overlap: replaced by a newer run" },
    });
    expect(await stage.store.runs.attempts(first.run_id)).toHaveLength(1);

    // The newer run also replaces a run whose next attempt is due and not claimed yet.
    await end(await one(task, second.slot_ms), { ...failed, dueMs: second.slot_ms }, second.slot_ms);
    await stage.store.plans.admitHeld(third.slot_ms, third.slot_ms);
    expect(await states(second.run_id, third.run_id)).toEqual(["cancelled", "ready"]);
    await end(await one(task, third.slot_ms));
    const ledger = await stage.store.history.slots(task.taskId, 0, third.slot_ms, 10);
    expect(ledger.slots.map(({ outcome }) => outcome)).toEqual(["run", "run", "run"]);
    expect((await stage.store.tasks.counters([task.taskId])).get(task.taskId)).toMatchObject({
      succeeded: 1,
      cancelled: 2,
      retried: 2,
      skipped: 0,
    });
  });

  it("a slot reserved for a future run goes to a run that is due now", async () => {
    const task = await gated("yields", "queue");
    const future = await stage.enqueue(task, { dueMs: stage.nowMs + 10_000 });
    expect(await states(future)).toEqual(["ready"]);
    const now = await stage.enqueue(task, { dueMs: stage.nowMs });
    expect(await states(future, now)).toEqual(["held", "ready"]);
    await end(await one(task));
    expect(await states(future, now)).toEqual(["ready", "succeeded"]);
  });

  it("a slot reserved for a later run goes to a run that is due sooner, before either is due", async () => {
    const task = await gated("sooner", { allow: 2 });
    const write = (seconds: number) => stage.enqueue(task, { dueMs: stage.nowMs + seconds * 1_000 });
    const [late, later, soon] = [await write(30), await write(40), await write(10)];
    expect(await states(late, later, soon)).toEqual(["ready", "held", "ready"]);
    const sooner = await write(20);
    expect(await states(late, later, soon, sooner)).toEqual(["held", "held", "ready", "ready"]);
    const after = await write(50);
    expect(await states(late, later, soon, sooner, after)).toEqual(["held", "held", "ready", "ready", "held"]);
    await end(await one(task, stage.nowMs + 10_000), succeededVerdict, stage.nowMs + 10_001);
    expect(await states(late, later, sooner)).toEqual(["ready", "held", "ready"]);
  });

  it("runs waiting for a slot start by priority, and future runs after due ones", async () => {
    const task = await gated("urgent", "queue");
    await stage.enqueue(task);
    const first = await one(task);
    const usual = [await stage.enqueue(task, { dueMs: stage.nowMs - 2 }), await stage.enqueue(task)];
    const future = await stage.enqueue(task, { dueMs: stage.nowMs + 60_000, priority: 9 });
    const urgent = await stage.enqueue(task, { priority: 8 });
    const taken: number[] = [];
    for (let run = first; taken.length < 3; taken.push(run.runId)) {
      await end(run);
      run = await one(task);
    }
    expect(taken).toEqual([urgent, ...usual]);
    expect(await states(future)).toEqual(["held"]);
  });

  const seeds = [1, 2, 3].map((n) => n * 7_919 + (process.pid % 1_000));
  it.each(seeds)("never more runs than the limit, and none left behind, with seed %i", async (seed) => {
    const random = seeded(seed);
    const pick = (n: number) => Math.floor(random.next() * n);
    const limits = [1, 2, 1, 1, 3];
    const tasks = [
      await gated(`random-queue-${seed}`, "queue"),
      await gated(`random-allow-${seed}`, { allow: 2 }),
      await gated(`random-skip-${seed}`, "skip"),
      await gated(`random-replace-${seed}`, "replace"),
      await gated(`random-allow3-${seed}`, { allow: 3 }),
    ];
    const ids = tasks.map(({ taskId }) => taskId);
    const deadlocks = async () =>
      (await stage.one("select deadlocks as n from pg_stat_database where datname = current_database()")).n;
    const before = await deadlocks();
    const stores = await Promise.all(Array.from({ length: 4 }, () => stage.another({ connectionsMax: 2 })));
    const sessions = await Promise.all(stores.map(() => stage.session("worker")));
    const groupIds = tasks.map(({ groupId }) => groupId);
    const started = performance.now();
    const nowMs = () => stage.nowMs + Math.floor(performance.now() - started);

    let going = true;
    let worst = "";
    const watch = (async () => {
      while (going) {
        const rows = await stage.rows(
          "select task_id, count(*) as n from $s.run where task_id = any($1) and state in (2, 3) and gate > 0 group by task_id",
          [ids],
        );
        for (const row of rows) {
          const limit = limits[ids.indexOf(row.task_id as number)] as number;
          if ((row.n as number) > limit) worst = `task ${row.task_id} had ${row.n} of ${limit}`;
        }
      }
    })();
    const steps = stores.map(async (store, i) => {
      const mine: ClaimedRun[] = [];
      const settle = async (verdicts: Verdict[]) => {
        const items = mine
          .splice(0, 1 + pick(3))
          .map((run, at) => settlement(run, verdicts[at % verdicts.length] as Verdict, nowMs()));
        if (items.length > 0) await store.claims.settle(sessions[i] as number, items, nowMs());
      };
      for (let step = 0; step < 70; step++) {
        const task = tasks[pick(tasks.length)] as TaskRecord;
        switch (pick(7)) {
          case 0:
          case 1: {
            const writes = Array.from({ length: 1 + pick(3) }, () =>
              stage.write(tasks[pick(tasks.length)] as TaskRecord, { dueMs: nowMs() + pick(60) - 30 }),
            );
            await store.runs.enqueue(writes, nowMs());
            break;
          }
          case 2:
          case 3: {
            const request = {
              sessionId: sessions[i] as number,
              groupIds,
              exceptTaskIds: [],
              untilMs: nowMs() + 20,
              limit: 1 + pick(4),
              nowMs: nowMs(),
            };
            mine.push(...(await store.claims.claim(request)).runs);
            break;
          }
          case 4:
            await settle([
              succeededVerdict,
              { kind: "retry", dueMs: nowMs() + pick(20), error: null },
              { kind: "released" },
            ]);
            break;
          case 5:
            await store.plans.admitHeld(nowMs(), nowMs());
            break;
          case 6: {
            const [found] = await stage.rows("select id from $s.run where task_id = $1 order by random() limit 1", [
              task.taskId,
            ]);
            if (found && random.next() < 0.3) {
              // The run may have ended since it was selected; then there is nothing to cancel.
              await store.runs
                .cancel(found.id as number, "at random", nowMs())
                .catch((error) => expect(error.code).toBe("RUN_STATE"));
            }
          }
        }
      }
      while (mine.length > 0) await settle([succeededVerdict]);
    });
    await Promise.all(steps);
    // All runs come due and end here; afterwards no run may be left in any table.
    for (let round = 0; ; round++) {
      const atMs = nowMs() + 1_000;
      await stage.store.plans.admitHeld(atMs, atMs);
      const runs = await stage.claim(session, tasks, atMs);
      if (runs.length === 0) break;
      expect(round, "it does not come to an end").toBeLessThan(500);
      await stage.store.claims.settle(
        session,
        runs.map((run) => settlement(run, succeededVerdict, atMs)),
        atMs,
      );
    }
    going = false;
    await watch;
    expect(worst).toBe("");
    expect(
      await stage.rows("select state, count(*) as n from $s.run where task_id = any($1) group by 1", [ids]),
    ).toEqual([]);
    expect(await deadlocks()).toBe(before);
  });

  it("no deadlock when fixed-delay runs are skipped, edited, paused and ended at once", async () => {
    const seed = 11 + (process.pid % 1_000);
    const random = seeded(seed);
    const deadlocks = async () =>
      (await stage.one("select deadlocks as n from pg_stat_database where datname = current_database()")).n;
    const before = await deadlocks();
    const task = await gated("knot", "skip", { schedule: every("1s", { mode: "delay" }) });
    const stores = await Promise.all(Array.from({ length: 4 }, () => stage.another({ connectionsMax: 2 })));
    let clockMs = stage.nowMs;
    const failures: string[] = [];
    const attempt = (work: Promise<unknown>) =>
      work.catch((error) => void failures.push(`${error.code}: ${error.message}`));
    for (let round = 0; round < 60; round++) {
      clockMs += 2_000;
      const nowMs = clockMs;
      await stage.plan([task], session, nowMs, nowMs);
      if (random.next() < 0.7) await stage.enqueue(task, { dueMs: nowMs - 5 }, nowMs);
      const runs = await stage.claim(session, [task], nowMs);
      const live = await stage.rows("select id from $s.run where task_id = $1 and state < 3", [task.taskId]);
      const [a, b, c, d] = stores as [Stage["store"], Stage["store"], Stage["store"], Stage["store"]];
      await Promise.all([
        attempt(
          a.claims.settle(
            session,
            runs.map((run) => settlement(run, succeededVerdict, nowMs)),
            nowMs,
          ),
        ),
        attempt(
          b.tasks.save(
            { ...task.definition, description: `${round}`, group: `knot-${round % 2}` },
            null,
            change(nowMs),
          ),
        ),
        attempt(c.plans.admitHeld(nowMs, nowMs)),
        ...live
          .slice(0, 1)
          .map(({ id }) =>
            d.runs
              .cancel(id as number, "", nowMs)
              .catch((error) => expect(error.code, `seed ${seed}`).toBe("RUN_STATE")),
          ),
      ]);
      if (round % 5 === 4) {
        await Promise.all([attempt(b.tasks.pause("knot", change(nowMs))), attempt(c.plans.admitHeld(nowMs, nowMs))]);
        await stage.store.tasks.resume("knot", change(nowMs));
      }
      task.groupId = (await stage.store.tasks.byName("knot")).groupId;
    }
    expect(failures, `seed ${seed}`).toEqual([]);
    expect(await deadlocks(), `seed ${seed}`).toBe(before);
  });
});

interface Row {
  slot_ms: number;
  run_id: number;
}

/** Returns the options that a later edit of the task must repeat, because the edit would reset them otherwise. */
function options(task: TaskRecord): TaskOptions {
  return { group: task.definition.group, grace: task.definition.graceMs };
}
