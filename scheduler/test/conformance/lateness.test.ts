import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runSummaryObject } from "../../src/api/run-json.ts";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import { latenessMs } from "../../src/run/handling/lateness.ts";
import { every } from "../../src/schedule/schedule.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

const minute = 60_000;
const hour = 3_600_000;
/** How long after a run has become ready a worker claims it, in ms. */
const late = 2_000;

describe.each(everyPostgres())("lateness of a run's start, on $title", (server) => {
  let stage: Stage;
  let sessionId: number;
  let dueMs: number;
  beforeAll(async () => {
    stage = await openStage(server);
    dueMs = stage.nowMs;
    sessionId = await stage.session("worker");
  });
  afterAll(() => stage.close());

  let tasks = 0;
  const made = (options: TaskOptions = {}): Promise<TaskRecord> =>
    stage.task(`task-${++tasks}`, { group: `group-${tasks}`, ...options });
  const one = (runs: ClaimedRun[]): ClaimedRun => {
    expect(runs).toHaveLength(1);
    return runs[0] as ClaimedRun;
  };
  const claim = async (task: TaskRecord, nowMs: number) => one(await stage.claim(sessionId, [task], nowMs, 1));
  const end = (run: ClaimedRun, nowMs: number) =>
    stage.store.claims.settle(sessionId, [settlement(run, succeededVerdict, nowMs)], nowMs);
  let turns = 0;
  const addressed = async (task: TaskRecord, nowMs: number) => {
    await stage.store.plans.admitHeld(nowMs, nowMs);
    const { runs } = await stage.store.routes.view(nowMs, 100, [], 0);
    const [mine] = runs.filter(({ taskId }) => taskId === task.taskId);
    const { runId, taskId } = mine as { runId: number; taskId: number };
    await stage.store.routes.address([{ runId, taskId, sessionId, node: "n", turn: ++turns }], nowMs);
    const asked = { sessionId, groupIds: [-sessionId], exceptTaskIds: [], limit: 1 };
    return one((await stage.store.claims.claim({ ...asked, untilMs: nowMs, nowMs })).runs);
  };

  /**
   * Makes two runs due. The second one waits until `roomMs`, when the first one ends or the rate allows another start, and a worker
   * claims it `late` ms after that.
   */
  const afterAnother = async (
    task: TaskRecord,
    roomMs: number,
    endFirst: (run: ClaimedRun, nowMs: number) => Promise<unknown> = end,
  ) => {
    await stage.enqueue(task, { dueMs });
    await stage.enqueue(task, { dueMs });
    await stage.store.plans.admitHeld(dueMs, dueMs);
    const first = await claim(task, dueMs);
    expect(await stage.claim(sessionId, [task], roomMs - 1), "it waits").toEqual([]);
    await endFirst(first, roomMs);
    await stage.store.plans.admitHeld(roomMs, roomMs);
    return claim(task, roomMs + late);
  };

  it.each([
    ["its task's limit", { overlap: "queue" }, minute],
    ["its key's limit", { limit: { perKey: 1 } }, minute],
    ["its task's rate", { rate: { limit: 1, per: "1h" } }, hour],
  ] as const)("does not count the wait for %s", async (_, options, waitMs) => {
    const roomMs = dueMs + waitMs;
    const run = await afterAnother(await made(options), roomMs);
    expect(latenessMs(run, roomMs + late)).toBe(late);
    await end(run, roomMs + late);
    const record = await stage.store.runs.find(run.runId);
    expect(runSummaryObject(record), "and history knows both").toMatchObject({
      lateMs: waitMs + late,
      ownWaitMs: waitMs,
    });
  });

  const limited = async (most: number) => {
    const task = await made();
    await stage.store.groups.limit(task.definition.group, most, change(dueMs));
    return task;
  };

  it("does not count the wait for its group's limit, until a run of the group ends, is retried or is released", async () => {
    const ends = {
      ended: end,
      retried: (run: ClaimedRun, nowMs: number) => {
        const verdict = { kind: "retry" as const, dueMs: nowMs + hour, error: null };
        return stage.store.claims.settle(sessionId, [settlement(run, verdict, nowMs)], nowMs);
      },
      released: async (run: ClaimedRun, nowMs: number) => {
        const verdict = { kind: "released" as const };
        await stage.store.claims.settle(sessionId, [{ ...settlement(run, verdict, nowMs), startedMs: null }], nowMs);
      },
    };
    for (const [how, endFirst] of Object.entries(ends)) {
      const run = await afterAnother(await limited(1), dueMs + minute, endFirst);
      expect([how, latenessMs(run, dueMs + minute + late)]).toEqual([how, late]);
    }
  });

  it.each([2, null])("does not count the wait for its group's limit, until the limit is %s", async (most) => {
    const task = await limited(1);
    for (const _ of [1, 2]) await stage.enqueue(task, { dueMs });
    await claim(task, dueMs);
    await stage.store.groups.limit(task.definition.group, most, change(dueMs + minute));
    expect(latenessMs(await claim(task, dueMs + minute + late), dueMs + minute + late)).toBe(late);
  });

  it("counts the wait in a group with a free slot, from the due time or from when the slot became free", async () => {
    const task = await limited(2);
    for (const _ of [1, 2]) await stage.enqueue(task, { dueMs });
    const first = await claim(task, dueMs);
    expect(latenessMs(await claim(task, dueMs + minute), dueMs + minute)).toBe(minute);
    await stage.enqueue(task, { dueMs: dueMs + minute });
    await end(first, dueMs + 2 * minute);
    expect(latenessMs(await claim(task, dueMs + 5 * minute), dueMs + 5 * minute)).toBe(3 * minute);
  });

  it("does not count the wait for its per-worker limit while its worker was running", async () => {
    const task = await made({ limit: { perWorker: 1 } });
    for (const _ of [1, 2]) await stage.enqueue(task, { dueMs });
    const first = await addressed(task, dueMs);
    await end(first, dueMs + minute);
    const run = await addressed(task, dueMs + minute);
    expect(latenessMs(run, dueMs + minute + late)).toBe(late);
  });

  it("counts the wait for a worker that was not running yet", async () => {
    const task = await made({ limit: { perWorker: 1 } });
    await stage.enqueue(task, { dueMs: dueMs - hour }, dueMs - hour);
    await stage.store.plans.admitHeld(dueMs - hour, dueMs - hour);
    const run = await addressed(task, dueMs);
    expect(latenessMs(run, dueMs + late)).toBe(hour + late);
  });

  it("does not count a pause, a limit that an edit removed, or the delay of a late enqueue", async () => {
    const [paused, edited, plain] = [await made(), await made({ overlap: "queue" }), await made()];
    await stage.enqueue(paused, { dueMs });
    const { name } = paused.definition;
    await stage.store.tasks.pause(name, change(dueMs));
    await stage.store.tasks.resume(name, change(dueMs + minute));
    for (const _ of [1, 2]) await stage.enqueue(edited, { dueMs });
    await claim(edited, dueMs);
    const { group } = edited.definition;
    await stage.store.tasks.save(defineTask(edited.definition.name, { group }), null, change(dueMs + minute));
    await stage.enqueue(plain, { dueMs }, dueMs + minute);
    for (const task of [paused, edited, plain]) {
      const run = await claim(task, dueMs + minute + late);
      expect([task.definition.name, latenessMs(run, dueMs + minute + late)]).toEqual([task.definition.name, late]);
    }
  });

  it("counts all of the delay if a worker or the planner was missing", async () => {
    const plain = await made();
    await stage.enqueue(plain, { dueMs });
    const run = await claim(plain, dueMs + minute);
    expect([run.readyMs ?? null, latenessMs(run, dueMs + minute)]).toEqual([null, minute]);
    await end(run, dueMs + minute);
    const record = await stage.store.runs.find(run.runId);
    expect(runSummaryObject(record)).toMatchObject({ lateMs: minute, ownWaitMs: 0 });

    const planned = await made({ schedule: every("1h", { anchor: dueMs }), misfire: "all" });
    const slotMs = planned.nextSlotMs as number;
    await stage.plan([planned], sessionId, slotMs + minute, slotMs + minute);
    const slot = await claim(planned, slotMs + minute);
    expect(latenessMs(slot, slotMs + minute)).toBe(minute);
  });
});
