import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Signal } from "../../src/cluster/signal-store.ts";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import { every } from "../../src/schedule/schedule.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

/** Tests slots that were planned in time but could not start in time, because no worker could claim runs for a while. */
describe.each(everyPostgres())("late starts on $title", (server) => {
  let stage: Stage;
  let planner: number;
  let worker: number;
  beforeAll(async () => {
    stage = await openStage(server);
    planner = await stage.session();
    worker = await stage.session("worker");
  });
  afterAll(() => stage.close());

  let made = 0;
  /** Creates a task with one slot per second, of which ten are planned and not claimed. */
  async function planned(misfire: TaskOptions["misfire"], options: TaskOptions = {}): Promise<TaskRecord> {
    const name = `late-${++made}`;
    const task = await stage.task(name, { group: name, schedule: every("1s"), misfire, ...options });
    expect(await stage.plan([task], planner, stage.nowMs + 10_000)).toBe(10);
    return task;
  }
  const slotsOf = (runs: readonly ClaimedRun[]) => runs.map(({ slotMs }) => slotMs as number).sort((a, b) => a - b);

  /** Checks that ledger, history and counters agree on the missed slots. @returns the slots that became runs, and those missed */
  async function account(task: TaskRecord): Promise<{ run: number[]; missed: number[] }> {
    const { slots, ranges } = await stage.store.history.slots(task.taskId, 0, stage.nowMs + 86_400_000, 100);
    const of = (outcome: string) => slots.filter((slot) => slot.outcome === outcome).map(({ slotMs }) => slotMs);
    const missed = of("missed").sort((a, b) => a - b);
    const history = await stage.rows(
      "select slot_ms, error->>'message' as why from $s.run_history where task_id = $1 and outcome = 3 order by 1",
      [task.taskId],
    );
    const why = `misfire: ${task.definition.misfire.policy}`;
    expect(history).toEqual(missed.map((slot_ms) => ({ slot_ms, why })));
    expect(slots.filter((slot) => slot.outcome === "missed").every(({ reason }) => reason === why)).toBe(true);
    const unplanned = ranges.reduce((sum, range) => sum + (range.slots ?? 0), 0);
    const counters = (await stage.store.tasks.counters([task.taskId])).get(task.taskId);
    expect([counters?.missed ?? 0, counters?.skipped ?? 0]).toEqual([missed.length + unplanned, 0]);
    return { run: of("run").sort((a, b) => a - b), missed };
  }

  let turns = 0;
  /** Applies the policies to the due runs, addresses the runs to the worker, and claims them there. */
  async function claimRouted(task: TaskRecord, nowMs: number): Promise<ClaimedRun[]> {
    await stage.store.plans.admitHeld(nowMs, nowMs);
    const { runs } = await stage.store.routes.view(nowMs, 100, [], 0);
    const mine = runs.filter(({ taskId }) => taskId === task.taskId);
    await stage.store.routes.address(
      mine.map(({ runId, taskId }) => ({ runId, taskId, sessionId: worker, node: "n", turn: ++turns })),
      stage.nowMs,
    );
    const asked = { sessionId: worker, groupIds: [-worker], exceptTaskIds: [], limit: 100 };
    return (await stage.store.claims.claim({ ...asked, untilMs: nowMs, nowMs })).runs;
  }

  it("skip: runs later than the misfire time are given up, all others run", async () => {
    const task = await planned({ policy: "skip", after: "4s" });
    const first = task.nextSlotMs as number;
    const nowMs = first + 9_500;
    const claimed = slotsOf(await stage.claim(worker, [task], nowMs));
    expect(claimed).toEqual([6, 7, 8, 9].map((at) => first + at * 1_000));
    const { run, missed } = await account(task);
    expect(run).toEqual(claimed);
    expect(missed).toEqual([0, 1, 2, 3, 4, 5].map((at) => first + at * 1_000));
    expect(slotsOf(await stage.claim(worker, [task], nowMs))).toEqual([]);
  });

  it("fire_once: the newest slot runs, however late", async () => {
    const task = await planned("fire_once", { schedule: every("1s", { anchor: stage.nowMs }) });
    const { taskId, nextSlotMs } = task;
    // No slot follows the tenth, as if the schedule had ended.
    await stage.rows("update $s.plan set next_slot_ms = null where task_id = $1", [taskId]);
    const claimed = slotsOf(await stage.claim(worker, [task], stage.nowMs + 3_600_000));
    expect(claimed).toEqual([(nextSlotMs as number) + 9_000]);
    expect((await account(task)).missed).toHaveLength(9);
  });

  it("fire_once: a slot that is due but not planned yet is the one to run", async () => {
    const task = await planned("fire_once");
    const nowMs = stage.nowMs + 60_000;
    expect(await stage.claim(worker, [task], nowMs)).toEqual([]);
    expect((await account(task)).missed).toHaveLength(10);
    await stage.plan([task], planner, nowMs, nowMs);
    const { run, missed } = await account(task);
    expect([run.length, missed.length]).toEqual([1, 10]);
    expect(slotsOf(await stage.claim(worker, [task], nowMs))).toEqual(run);
  });

  it("fire_once: one of all late runs starts, however many workers come back at once", async () => {
    const task = await planned("fire_once");
    await stage.rows("update $s.plan set next_slot_ms = null where task_id = $1", [task.taskId]);
    const workers = await Promise.all(Array.from({ length: 8 }, () => stage.session("worker")));
    const claims = await Promise.all(
      workers.map((session) => stage.claim(session, [task], stage.nowMs + 3_600_000, 2)),
    );
    const rest = await stage.claim(worker, [task], stage.nowMs + 3_600_000);
    const runs = [...claims.flat(), ...rest];
    expect(slotsOf(runs)).toEqual([(task.nextSlotMs as number) + 9_000]);
    expect((await account(task)).missed).toHaveLength(9);
  });

  it("all: every one runs", async () => {
    const task = await planned("all");
    expect(await stage.claim(worker, [task], stage.nowMs + 3_600_000)).toHaveLength(10);
    expect((await account(task)).missed).toEqual([]);
  });

  it("runs that waited for a slot, were attempted, were enqueued, or count from an end are only late", async () => {
    const muchLater = stage.nowMs + 3_600_000;
    const serial = await planned("skip", { overlap: "queue" });
    expect(await stage.claim(worker, [serial], muchLater)).toHaveLength(1);

    const enqueued = await stage.task("late-enqueued", { group: "late-enqueued", misfire: "skip" });
    await stage.enqueue(enqueued);
    expect(await stage.claim(worker, [enqueued], muchLater)).toHaveLength(1);

    const delay = { group: "late-delay", schedule: every("1s", { mode: "delay" }), misfire: "skip" } as const;
    const counted = await stage.task("late-delay", delay);
    await stage.plan([counted], planner, stage.nowMs + 10_000);
    expect(await stage.claim(worker, [counted], muchLater)).toHaveLength(1);

    const retried = await planned({ policy: "skip", after: "4s" });
    const [run] = await stage.claim(worker, [retried], retried.nextSlotMs as number);
    const verdict = { kind: "retry", dueMs: stage.nowMs + 30_000, error: null } as const;
    await stage.store.claims.settle(worker, [settlement(run as ClaimedRun, verdict, stage.nowMs)], stage.nowMs);
    const again = await stage.claim(worker, [retried], muchLater);
    expect(again.map(({ runId, attempt }) => [runId, attempt])).toEqual([[run?.runId, 2]]);
  });

  it("a run that waited for a worker's slot is judged when it is claimed, and its slot goes to the next run", async () => {
    const signals: Signal[] = [];
    const end = new AbortController();
    onTestFinished(() => end.abort());
    void stage.store.signals.listen((signal) => void signals.push(signal), end.signal);
    await expect.poll(() => signals).toContainEqual({ kind: "resync" });
    const waiting = { policy: "fire_once", after: "4s", waiting: true } as const;
    for (const misfire of [{ policy: "skip", after: "4s" }, waiting] as const) {
      const task = await planned(misfire, { limit: { perWorker: 1 } });
      const first = task.nextSlotMs as number;
      const begun = (nowMs: number) => claimRouted(task, nowMs);
      const [running] = await begun(first);
      expect(running?.slotMs).toBe(first);
      // Each run passes its task's limit when it is due, and then waits because the worker has reached its limit for the task.
      for (let at = 1; at < 10; at++) expect(await begun(first + at * 1_000), `slot ${at} waits`).toEqual([]);
      await stage.store.claims.settle(
        worker,
        [settlement(running as ClaimedRun, succeededVerdict, first)],
        first + 9_500,
      );
      signals.length = 0;
      for (let at = 1; at <= 5; at++) {
        expect(await begun(first + 9_500), `slot ${at}`).toEqual([]);
        await expect.poll(() => signals).toContainEqual({ kind: "direct", dueMs: first + 9_500 });
        signals.length = 0;
      }
      const [next] = await begun(first + 9_500);
      expect((next?.slotMs as number) - first).toBe(6_000);
    }
    // With `fire_once`, runs that already wait are not given up, so the late run starts.
    const patient = await planned("fire_once", { limit: { perWorker: 1 } });
    expect(slotsOf(await claimRouted(patient, stage.nowMs + 3_600_000))).toEqual([patient.nextSlotMs]);
  });

  it("a run released before its start is judged again at its next claim", async () => {
    const task = await planned({ policy: "skip", after: "4s" });
    const first = task.nextSlotMs as number;
    const [run] = await stage.claim(worker, [task], first);
    const released = settlement(run as ClaimedRun, { kind: "released" }, first);
    await stage.store.claims.settle(worker, [released], first);
    expect(slotsOf(await stage.claim(worker, [task], first + 4_500))).not.toContain(first);
    expect((await account(task)).missed).toEqual([first]);
  });
});
