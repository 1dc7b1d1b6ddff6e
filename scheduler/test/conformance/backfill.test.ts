import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BackfillRange } from "../../src/run/operations.ts";
import { cron, every } from "../../src/schedule/schedule.ts";
import { runState } from "../../src/store/postgres/states.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { postgres } from "../support/servers.ts";
import { change, dayMs, openStage, type Stage } from "../support/store-stage.ts";

const hourMs = 3_600_000;

describe("backfill", () => {
  let stage: Stage;
  let tokens = 0;
  /** Midnight UTC, five days ago. */
  let startMs: number;
  beforeAll(async () => {
    stage = await openStage(postgres());
    startMs = Math.floor(stage.nowMs / dayMs - 5) * dayMs;
  });
  afterAll(() => stage.close());

  const request = (task: string, range: Partial<BackfillRange> = {}) => ({
    kind: "backfill" as const,
    filter: { task },
    author: "test",
    reason: "",
    range: { fromMs: startMs, toMs: startMs + dayMs - 1, perSecond: null, reverse: false, missed: false, ...range },
  });
  const begin = (task: string, range: Partial<BackfillRange> = {}) =>
    stage.store.operations.begin(request(task, range), `token ${++tokens}`, stage.nowMs);
  async function carryOut(id: number, store = stage.store) {
    for (let ms = 0; (await store.operations.find(id)).endedMs === null; ms += 500)
      await store.operations.step(stage.nowMs + ms, id);
    return store.operations.find(id);
  }
  const slotsOf = async (task: TaskRecord) =>
    (await stage.rows("select slot_ms from $s.run where task_id = $1 order by id", [task.taskId])).map(
      (row) => row.slot_ms as number,
    );
  const hours = Array.from({ length: 24 }, (_, hour) => hour);

  it("makes a run for every slot without one, with the slot and its payload", async () => {
    const task = await stage.task("hourly", { schedule: cron("0 * * * *"), slotPayload: { a: 1 } });
    const preview = await stage.store.operations.preview(request("hourly"), stage.nowMs, 1);
    expect(preview).toEqual({ total: 24, first: [`hourly at ${new Date(startMs).toISOString()}`] });
    expect(await carryOut(await begin("hourly"))).toMatchObject({ state: "done", total: 24, done: 24, passed: 0 });
    expect(await slotsOf(task)).toEqual(hours.map((hour) => startMs + hour * hourMs));
    const [run] = await stage.store.runs.list({ task: "hourly", limit: 1 });
    expect(run).toMatchObject({ source: "slot", payload: { a: 1 } });
    const { slots } = await stage.store.history.slots(task.taskId, startMs, startMs, 1);
    expect(slots).toMatchObject([
      { outcome: "run", runId: expect.any(Number), reason: expect.stringMatching(/^backfill \d+$/) },
    ]);
    // The first backfill has created all runs, so the second creates none.
    expect(await carryOut(await begin("hourly", { reverse: true }))).toMatchObject({ total: 24, done: 0, passed: 24 });
  });

  it("makes no second run for a slot that ran at its original or moved time before an edit changed its time", async () => {
    const [first, second, third] = [0, 1, 2].map((day) => new Date(startMs + day * dayMs).toISOString().slice(0, 10));
    const days = async (holidays: string[]) =>
      stage.store.calendars.set("edited", { zone: "UTC", weekend: [], holidays }, change(stage.nowMs));
    await days([]);
    // The task has no slot on the following days, so a slot that moves has its day to itself.
    const rest = [third, ...[3, 4].map((day) => new Date(startMs + day * dayMs).toISOString().slice(0, 10))];
    const schedule = cron(`0 9 ${Number((first as string).slice(8))} * *`);
    const calendar = { name: "edited", otherwise: "next" } as const;
    const task = await stage.task("edited", { schedule, calendar }, startMs);
    const other = await stage.task("put-back", { schedule, calendar: { ...calendar } }, startMs);
    const ownMs = startMs + 9 * hourMs;
    const [session, range] = [await stage.session(), { toMs: startMs + 5 * dayMs }];
    await stage.plan([task], session, ownMs, ownMs);
    expect(await slotsOf(task)).toEqual([ownMs]);
    await days([first as string]);
    // The new holiday moves the slot to the second day, for which the ledger has no entry.
    expect(await carryOut(await begin("edited", range))).toMatchObject({ total: 1, done: 0, passed: 1 });
    expect(await carryOut(await begin("edited", { ...range, missed: true }))).toMatchObject({ done: 0, passed: 1 });
    expect(await slotsOf(task)).toEqual([ownMs]);

    // This slot has not run, so it runs once at its moved time; the ledger records its original time too.
    expect(await carryOut(await begin("put-back", { ...range, missed: true }))).toMatchObject({ total: 1, done: 1 });
    expect(await slotsOf(other)).toEqual([ownMs + dayMs]);
    const { slots } = await stage.store.history.slots(other.taskId, ownMs + dayMs, ownMs + dayMs, 1);
    expect(slots).toMatchObject([{ outcome: "run", nominalMs: [ownMs] }]);
    await days([second as string, ...(rest as string[])]);
    expect(await carryOut(await begin("put-back", { ...range, missed: true }))).toMatchObject({ done: 0, passed: 1 });
    expect(await slotsOf(other)).toEqual([ownMs + dayMs]);
  });

  it("makes one run per slot, however many backfills cover it at once", async () => {
    const task = await stage.task("raced", { schedule: every("1m") });
    const stores = [stage.store, await stage.another()];
    const ids = [await begin("raced"), await begin("raced", { reverse: true })];
    const [a, b] = await Promise.all(ids.map((id, i) => carryOut(id, stores[i])));
    expect(a!.done + b!.done).toBe(1_440);
    const slots = await slotsOf(task);
    expect(slots).toHaveLength(1_440);
    expect(new Set(slots).size).toBe(1_440);
  });

  it("reaches further back than the ledger's partitions, and creates those", async () => {
    const task = await stage.task("daily", { schedule: cron("0 3 * * *") });
    const fromMs = startMs - 400 * dayMs;
    expect(await carryOut(await begin("daily", { fromMs, toMs: startMs - 1 }))).toMatchObject({
      total: 400,
      done: 400,
    });
    const { slots } = await stage.store.history.slots(task.taskId, fromMs, startMs, 500);
    expect(slots.filter(({ outcome }) => outcome === "run")).toHaveLength(400);
  });

  it("enqueues at its rate by due times, newest first on request, and can be stopped", async () => {
    const task = await stage.task("rated", { schedule: cron("0 * * * *") });
    const id = await begin("rated", { perSecond: 2, reverse: true });
    await stage.store.operations.step(stage.nowMs, id);
    const early = await stage.store.operations.step(stage.nowMs, id);
    expect(early).toEqual({ stepped: null, nextMs: stage.nowMs + 1_000 });
    expect(await slotsOf(task)).toHaveLength(4);
    await stage.store.operations.step(stage.nowMs + 1_000, id);
    const rows = await stage.rows("select slot_ms, due_ms from $s.run where task_id = $1 order by due_ms", [
      task.taskId,
    ]);
    expect(rows.map((row) => (row.due_ms as number) - stage.nowMs)).toEqual([
      0, 500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500,
    ]);
    expect(rows.map((row) => row.slot_ms)).toEqual(
      hours
        .slice(-8)
        .reverse()
        .map((hour) => startMs + hour * hourMs),
    );
    expect(await stage.store.operations.stop(id, stage.nowMs)).toBe("stopped");
    expect((await stage.store.operations.step(stage.nowMs + 60_000, id)).stepped).toBeNull();
    expect(await stage.store.operations.find(id)).toMatchObject({ state: "stopped", done: 8, total: 24 });
  });

  it("records a slot as skipped, in its row and in history, if its run is skipped at once by the overlap limit", async () => {
    const task = await stage.task("skipping", { schedule: cron("0 * * * *"), overlap: "skip" });
    const toMs = startMs + 2 * hourMs;
    expect(await carryOut(await begin("skipping", { toMs }))).toMatchObject({ state: "done", done: 3 });
    const { slots } = await stage.store.history.slots(task.taskId, startMs, toMs, 9);
    expect(slots.map(({ outcome }) => outcome).sort()).toEqual(["run", "skipped", "skipped"]);
    const skipped = await stage.rows("select slot_ms from $s.run_history where task_id = $1", [task.taskId]);
    expect(skipped.map(({ slot_ms }) => slot_ms).sort()).toEqual(
      slots.flatMap(({ outcome, slotMs }) => (outcome === "skipped" ? [slotMs] : [])).sort(),
    );
  });

  it("leaves a slot that was skipped after planning, unless missed slots are requested", async () => {
    const { taskId } = await stage.task("given-up", { schedule: cron("0 * * * *") });
    const one = { fromMs: startMs, toMs: startMs };
    await carryOut(await begin("given-up", one));
    await stage.rows("delete from $s.run where task_id = $1", [taskId]);
    await stage.rows("update $s.slot set outcome = 3, reason = 'misfire: skip' where task_id = $1", [taskId]);
    expect(await carryOut(await begin("given-up", one))).toMatchObject({ total: 1, done: 0, passed: 1 });
    expect(await carryOut(await begin("given-up", { ...one, missed: true }))).toMatchObject({ total: 1, done: 1 });
    const { slots } = await stage.store.history.slots(taskId, startMs, startMs, 9);
    expect(slots).toMatchObject([{ outcome: "run", reason: expect.stringMatching(/: was missed, misfire: skip$/) }]);
  });

  it("its runs wait during a pause of their task and continue after it; a scheduled slot that waited is skipped", async () => {
    const task = await stage.task("paused", { schedule: every("1m"), overlap: "queue" });
    const session = await stage.session();
    await carryOut(await begin("paused", { toMs: startMs + 9 * 60_000 }));
    const dueMs = (task.nextSlotMs as number) + 1;
    await stage.plan([task], session, dueMs);
    await stage.enqueue(task);
    const states = async () =>
      Object.fromEntries(
        (
          await stage.rows("select state, count(*)::int as n from $s.run where task_id = $1 group by 1", [task.taskId])
        ).map(({ state, n }) => [state, n]),
      );
    expect(await stage.store.tasks.pause("paused", change(dueMs))).toEqual({ recalled: [], held: 11, skipped: 1 });
    expect(await states()).toEqual({ [runState.paused]: 11 });
    expect(await stage.store.tasks.pause("paused", change(dueMs))).toEqual({ recalled: [], held: 0, skipped: 0 });
    expect((await stage.store.tasks.counters([task.taskId])).get(task.taskId)).toMatchObject({ skipped: 1 });
    await stage.store.tasks.resume("paused", change(dueMs));
    expect(await states()).toEqual({ [runState.ready]: 1, [runState.held]: 10 });
  });

  it("leaves missed and skipped slots as recorded, unless they are requested", async () => {
    const task = await stage.task("told", { schedule: cron("0 * * * *") });
    const skippedMs = startMs + 3 * hourMs;
    await stage.rows(
      "insert into $s.slot_range (task_id, version, from_ms, to_ms, slots, outcome, reason, recorded_ms) values ($1, 1, $2, $3, 3, 3, 'misfire', $4)",
      [task.taskId, startMs, startMs + 2 * hourMs, stage.nowMs],
    );
    await carryOut(await begin("told", { fromMs: skippedMs, toMs: skippedMs }));
    await stage.rows("delete from $s.run where task_id = $1", [task.taskId]);
    await stage.rows("update $s.slot set outcome = 2, run_id = null, reason = 'blackout' where task_id = $1", [
      task.taskId,
    ]);
    await stage.rows("insert into $s.tally_delta (task_id, skipped) values ($1, 1)", [task.taskId]);
    expect(await carryOut(await begin("told"))).toMatchObject({ total: 24, done: 20, passed: 4 });
    expect(await carryOut(await begin("told", { missed: true }))).toMatchObject({ total: 24, done: 4, passed: 20 });
    const { slots } = await stage.store.history.slots(task.taskId, skippedMs, skippedMs, 1);
    expect(slots).toMatchObject([
      { outcome: "run", reason: expect.stringMatching(/^backfill \d+: was skipped, blackout$/) },
    ]);
    expect((await stage.store.tasks.counters([task.taskId])).get(task.taskId)).toMatchObject({ skipped: 0 });
  });

  it("leaves future and planned slots alone, and excludes days that a calendar excludes", async () => {
    const task = await stage.task("future", { schedule: cron("0 * * * *") });
    await stage.rows("update $s.plan set next_slot_ms = $2 where task_id = $1", [task.taskId, startMs + 20 * hourMs]);
    const operation = await carryOut(
      await begin("future", { fromMs: startMs + 18 * hourMs, toMs: stage.nowMs + dayMs }),
    );
    expect(operation.done).toBe(2);
    expect(await slotsOf(task)).toEqual([18, 19].map((hour) => startMs + hour * hourMs));
    const day = new Date(startMs).toISOString().slice(0, 10);
    await stage.store.calendars.set("free", { zone: "UTC", weekend: [], holidays: [day] }, change(stage.nowMs));
    await stage.task("free", { schedule: cron("0 * * * *"), calendar: { name: "free" } });
    expect(await carryOut(await begin("free"))).toMatchObject({ total: 0, done: 0 });
  });

  it("is counted and searched in chunks, so that it blocks no other work, however many slots a calendar excludes", async () => {
    await stage.task("dense", { schedule: every("100ms") });
    let turns = 0;
    let counting = true;
    const count = () => {
      turns++;
      if (counting) setImmediate(count);
    };
    setImmediate(count);
    const range = { fromMs: startMs, toMs: startMs + 2 * hourMs - 1 };
    expect(await stage.store.operations.preview(request("dense", range), stage.nowMs, 1)).toMatchObject({
      total: 72_000,
    });
    counting = false;
    expect(turns).toBeGreaterThan(30);
    const day = new Date(startMs).toISOString().slice(0, 10);
    await stage.store.calendars.set("shut", { zone: "UTC", weekend: [], holidays: [day] }, change(stage.nowMs));
    await stage.task("shut", { schedule: every("1s"), calendar: { name: "shut" } });
    const id = await begin("shut", { toMs: startMs + hourMs });
    await stage.store.operations.step(stage.nowMs, id);
    expect(await stage.store.operations.find(id)).toMatchObject({ state: "running", total: 0 });
    expect(await carryOut(id)).toMatchObject({ state: "done", done: 0, failed: 0 });
  });

  it("is refused without a schedule, for an unknown task, or with an inverted time range", async () => {
    await stage.task("manual");
    await expect(begin("manual")).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(begin("nobody")).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    await expect(begin("manual", { fromMs: 2, toMs: 1 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });
});
