import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import { at, every } from "../../src/schedule/schedule.ts";
import { allGroups } from "../../src/task/group-store.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { asCode, change, openStage, type Stage, settlement, succeededVerdict, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("tasks on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session();
  });
  afterAll(() => stage.close());

  let groups = 0;
  const alone = (name: string, options: TaskOptions = {}) =>
    stage.task(name, { group: `g${++groups}`, grace: 0, ...options });
  const settle = (run: ClaimedRun, verdict: Verdict, nowMs = stage.nowMs) =>
    stage.store.claims.settle(session, [settlement(run, verdict, nowMs)], nowMs);
  const slotsIn = async (table: "slot" | "run", { taskId }: TaskRecord) =>
    (await stage.rows(`select slot_ms from $s.${table} where task_id = $1 order by 1`, [taskId])).map(
      (row) => row.slot_ms as number,
    );
  const ledger = (task: TaskRecord) => slotsIn("slot", task);
  const live = (task: TaskRecord) => slotsIn("run", task);

  describe("versions", () => {
    it("an equal definition changes nothing, a different one makes a version", async () => {
      const first = await stage.store.tasks.save(defineTask("versions", { description: "a" }), null, change(1_000));
      expect(first).toMatchObject({ changed: true, record: { version: 1 } });
      const same = await stage.store.tasks.save(defineTask("versions", { description: "a" }), null, change(2_000));
      expect(same).toMatchObject({ changed: false, record: { version: 1, changedMs: 1_000 } });
      const other = await stage.store.tasks.save(defineTask("versions", { description: "b" }), 1, {
        author: "ann",
        reason: "why",
        nowMs: 3_000,
      });
      expect(other).toMatchObject({ changed: true, record: { version: 2, definition: { description: "b" } } });
      const versions = await stage.store.tasks.versions("versions");
      expect(versions).toMatchObject([
        { version: 2, author: "ann", reason: "why", changedMs: 3_000, definition: { description: "b" } },
        { version: 1, definition: { description: "a" } },
      ]);
    });

    it("refuses an invalid definition and stores nothing of it, not even a group that it names first", async () => {
      const { tasks } = stage.store;
      const next = () => ({ group: `refused-${++groups}` });
      await stage.task("refused-there", { description: "a" });
      const stale = { code: "TASK_STALE" };
      await expect(tasks.save(defineTask("refused-there", next()), 7, change(1))).rejects.toMatchObject(stale);
      await expect(tasks.save(defineTask("refused-new", next()), 7, change(1))).rejects.toMatchObject(stale);
      const unknown = { ...next(), calendar: { name: "nowhere" } };
      const saveAll = (...given: [string, TaskOptions][]) =>
        tasks.saveAll(
          given.map(([name, options]) => defineTask(name, options)),
          change(1),
          asCode,
        );
      const noCalendar = { code: "CALENDAR_UNKNOWN" };
      await expect(tasks.save(defineTask("refused-new", unknown), null, change(1))).rejects.toMatchObject(noCalendar);
      await expect(saveAll(["refused-new", unknown])).rejects.toMatchObject(noCalendar);
      const after = saveAll(["refused-new", { ...next(), after: "nowhere" }]);
      await expect(after).rejects.toMatchObject({ code: "TASK_INVALID" });
      const left = async () =>
        (await stage.store.groups.list(stage.nowMs, allGroups)).filter(({ name }) => /^refused/.test(name));
      expect(await left()).toEqual([]);
      expect(await stage.rows("select name from $s.task where name = 'refused-new'")).toEqual([]);

      const same = { group: unknown.group };
      const made = await tasks.save(defineTask("refused-new", same), null, change(1));
      expect((await tasks.save(defineTask("refused-other", same), null, change(1))).record.groupId).toBe(
        made.record.groupId,
      );
      expect(await left()).toMatchObject([{ name: unknown.group, tasks: 2 }]);
    });

    it("refuses a change based on another version with TASK_STALE, including one that would create the task", async () => {
      const stale = (expected: number, name = "stale", description = "c") =>
        expect(stage.store.tasks.save(defineTask(name, { description }), expected, change(1))).rejects.toMatchObject({
          code: "TASK_STALE",
        });
      await stage.task("stale", { description: "a" });
      await stage.task("stale", { description: "b" });
      await stale(1);
      await stale(3);
      await stale(1, "stale", "b");
      await stale(1, "never-there");
      const one = { author: "ann", reason: "too slow", nowMs: Date.UTC(2030, 0, 1) };
      await stage.store.tasks.save(defineTask("stale", { description: "b", timeout: "1m" }), 2, one);
      await expect(stage.store.tasks.save(defineTask("stale", {}), 2, change(1))).rejects.toThrow(
        /at version 3, by ann at 2030-01-01T00:00:00.000Z \(too slow\).*from version 2.*: timeoutMs$/,
      );
      await expect(stage.store.tasks.byName("never-there")).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
      expect(await stage.store.tasks.versions("stale")).toHaveLength(3);
    });

    it("many processes that save the same definition at once make one version; different ones, one each", async () => {
      const stores = [
        stage.store,
        ...(await Promise.all(Array.from({ length: 7 }, () => stage.another({ connectionsMax: 2 })))),
      ];
      const same = await Promise.all(
        stores.map((store) =>
          store.tasks.save(defineTask("at-once", { schedule: every("1m") }), null, change(stage.nowMs)),
        ),
      );
      expect(same.filter(({ changed }) => changed)).toHaveLength(1);
      expect(new Set(same.map(({ record }) => record.taskId)).size).toBe(1);
      expect(same.every(({ record }) => record.version === 1)).toBe(true);
      const different = await Promise.all(
        stores.map((store, i) =>
          store.tasks.save(defineTask("at-once", { description: `${i}` }), null, change(stage.nowMs)),
        ),
      );
      expect(different.map(({ record }) => record.version).sort()).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
      const fromNine = await Promise.allSettled(
        stores.map((store, i) =>
          store.tasks.save(defineTask("at-once", { description: `x${i}` }), 9, change(stage.nowMs)),
        ),
      );
      expect(fromNine.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const result of fromNine)
        if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "TASK_STALE" });
    });

    it("gives a group one number, whichever process uses it first", async () => {
      const stores = [stage.store, await stage.another(), await stage.another()];
      const numbers = await Promise.all(
        stores.flatMap((store) => [store.tasks.group("new-group"), store.tasks.group("new-group")]),
      );
      expect(new Set(numbers).size).toBe(1);
    });
  });

  describe("an edit", () => {
    it("withdraws planned, unclaimed slots, and replans without losing or duplicating a slot", async () => {
      const task = await alone("edited", { schedule: every("1s") });
      await stage.plan([task], session, stage.nowMs + 5_000);
      const before = await ledger(task);
      expect(before).toHaveLength(5);
      const edited = await alone("edited", { schedule: every("1s"), description: "new", group: task.definition.group });
      expect(await ledger(task)).toEqual([]);
      expect(edited.nextSlotMs).toBe(before[0]);
      await stage.plan([edited], session, stage.nowMs + 5_000);
      expect(await ledger(task)).toEqual(before);
      expect(await live(task)).toEqual(before);
    });

    it("keeps a slot that is claimed ahead, and plans all other slots around it", async () => {
      const task = await alone("claimed-ahead", { schedule: every("1s") });
      await stage.plan([task], session, stage.nowMs + 5_000);
      const before = await ledger(task);
      const [first, second] = (await stage.claim(session, [task], before[1])) as [ClaimedRun, ClaimedRun];
      // The first run is given back unstarted, so only the second is claimed when the edit is made.
      await settle(first, { kind: "released" });
      const edited = await alone("claimed-ahead", {
        schedule: every("1s"),
        description: "new",
        group: task.definition.group,
      });
      expect(await live(task)).toEqual([second.slotMs]);
      await stage.plan([edited], session, stage.nowMs + 5_000);
      expect(await ledger(task), "no slot is lost").toEqual(before);
      expect(await live(task), "none is doubled").toEqual(before);
      const runs = await stage.rows("select version from $s.run where task_id = $1 order by slot_ms", [task.taskId]);
      expect(runs.map(({ version }) => version)).toEqual([2, 1, 2, 2, 2]);
    });

    it("keeps slots that already came due, and records unplanned ones as missed", async () => {
      const task = await alone("due-already", { schedule: every("1s") });
      await stage.plan([task], session, stage.nowMs + 2_000);
      const [first] = (await ledger(task)) as [number];
      const later = stage.nowMs + 10_000;
      await stage.store.tasks.save({ ...task.definition, description: "new" }, null, change(later));
      expect(await live(task)).toHaveLength(2);
      expect((await live(task))[0]).toBe(first);
      const { ranges } = await stage.store.history.slots(task.taskId, 0, later, 10);
      expect(ranges).toMatchObject([
        { fromMs: first + 2_000, toMs: first + 9_000, slots: 8, outcome: "missed", version: 1 },
      ]);
    });

    it("counts the newest 10,000 unplanned slots, so that counters and alarms include them", async () => {
      const task = await alone("long-away", { schedule: every("1s") });
      const first = task.nextSlotMs as number;
      const later = first + 20_000_000;
      await stage.store.tasks.save({ ...task.definition, description: "new" }, null, change(later));
      const { ranges } = await stage.store.history.slots(task.taskId, 0, later, 10);
      expect(ranges).toMatchObject([
        { fromMs: later - 9_999_000, toMs: later, slots: 10_000 },
        { fromMs: first, toMs: later - 10_000_000, slots: null },
      ]);
      const counted = "select sum(missed)::int as missed from $s.tally_delta where task_id = $1";
      expect(await stage.one(counted, [task.taskId])).toEqual({ missed: 10_000 });
    });

    it("moves waiting runs to the new group", async () => {
      const task = await alone("moves");
      const runId = await stage.enqueue(task);
      const moved = await alone("moves");
      expect(await stage.claim(session, [task])).toEqual([]);
      expect((await stage.claim(session, [moved])).map((run) => run.runId)).toEqual([runId]);
    });

    it("races the planner without losing or duplicating a slot", async () => {
      const task = await alone("edit-race", { schedule: every("100ms") });
      const other = await stage.another();
      const group = task.definition.group;
      for (let round = 1; round <= 20; round++) {
        const writes = await stage.steps([task], stage.nowMs + round * 500);
        await Promise.all([
          other.plans.accept({ sessionId: session, term: null }, writes, stage.nowMs),
          stage.store.tasks.save(
            defineTask("edit-race", { schedule: every("100ms"), group, description: `${round}` }),
            null,
            change(stage.nowMs),
          ),
        ]);
      }
      await stage.plan([task], session, stage.nowMs + 10_000);
      const slots = await ledger(task);
      expect(slots).toHaveLength(100);
      expect(slots).toEqual(slots.map((_, i) => (slots[0] as number) + i * 100));
      expect(await live(task)).toEqual(slots);
    });
  });

  describe("pause, resume, remove", () => {
    it("a pause takes back slots not yet due, skips due ones, and holds enqueued runs", async () => {
      const task = await alone("paused", { schedule: every("1s") });
      await stage.plan([task], session, stage.nowMs + 3_000);
      const [first, second, third] = (await ledger(task)) as [number, number, number];
      const waiting = await stage.enqueue(task, { dueMs: stage.nowMs });
      const { recalled } = await stage.store.tasks.pause("paused", { author: "ann", reason: "lunch", nowMs: first });
      expect(recalled).toEqual([]);
      expect(await stage.store.tasks.byName("paused")).toMatchObject({
        paused: { atMs: first, by: "ann", why: "lunch" },
        nextSlotMs: null,
      });
      expect(await stage.store.history.slots(task.taskId, 0, third, 10)).toMatchObject({
        slots: [{ slotMs: first, outcome: "skipped", reason: "task paused" }],
      });
      expect(await stage.store.runs.find(waiting)).toMatchObject({ state: "paused" });
      expect(await stage.enqueue(task)).toBeGreaterThan(waiting);
      expect(await stage.claim(session, [task], third)).toEqual([]);
      const others = await stage.store.plans.due(third * 2, 100_000);
      expect(others).not.toContainEqual(expect.objectContaining({ taskId: task.taskId }));
      expect(await stage.store.plans.nth(third * 2, others.length + 1), "nor counted").toBeNull();
      await stage.store.tasks.resume("paused", change(second + 1));
      expect(await stage.store.tasks.byName("paused")).toMatchObject({ paused: null, nextSlotMs: third });
      const all = await stage.store.plans.due(third * 2, 100_000);
      expect(await stage.store.plans.nth(third * 2, all.length)).toBe(all.at(-1)?.nextSlotMs);
      expect(await stage.store.plans.nth(third * 2, all.length, all.slice(0, 1)), "without the first").toBeNull();
      expect(await stage.claim(session, [task])).toHaveLength(2);
    });

    it.each(["resume", "remove"] as const)(
      "the %s records slots inside a pause as skipped, and those before an edit by the earlier schedule",
      async (act) => {
        const name = `paused-for-long-${act}`;
        const fromMs = stage.nowMs;
        const task = await alone(name, { schedule: every("10s", { anchor: fromMs }) });
        // A run that a worker has claimed ahead stays in the ledger.
        await stage.plan([task], session, fromMs + 10_000);
        await stage.claim(session, [task], fromMs + 10_000);
        await stage.store.tasks.pause(name, change(fromMs + 5_000));
        const edited = { ...task.definition, schedule: every("20s", { anchor: fromMs }) };
        await stage.store.tasks.save(edited, null, change(fromMs + 35_000));
        await stage.store.tasks[act](name, change(fromMs + 85_000));
        const { slots, ranges } = await stage.store.history.slots(task.taskId, fromMs + 1, fromMs + 90_000, 10);
        expect(slots).toMatchObject([{ slotMs: fromMs + 10_000 }]);
        const told = ranges.map(({ fromMs: from, toMs, slots: count, outcome, reason }) => [
          (from - fromMs) / 1_000,
          (toMs - fromMs) / 1_000,
          count,
          `${outcome}: ${reason}`,
        ]);
        expect(told.toSorted(([a], [b]) => Number(a) - Number(b))).toEqual([
          [20, 30, 2, "skipped: task paused"],
          [40, 80, 3, "skipped: task paused"],
        ]);
      },
    );

    it.each(["pause", "remove"] as const)(
      "%s recalls claimed-ahead runs, which end when released as if never claimed",
      async (act) => {
        const task = await alone(`asked-${act}`, { schedule: at(stage.nowMs + 5_000) });
        await stage.plan([task], session, stage.nowMs + 10_000);
        const [run] = (await stage.claim(session, [task], stage.nowMs + 5_000)) as [ClaimedRun];
        const { recalled } = await stage.store.tasks[act](`asked-${act}`, change(stage.nowMs));
        expect(recalled).toEqual([run.runId]);
        expect(await stage.store.runs.recallsOpen([run.runId])).toEqual([run.runId]);
        expect(await stage.store.claims.recalls(session)).toContainEqual(
          expect.objectContaining({ runId: run.runId, fence: run.fence, kind: "withdraw" }),
        );
        expect(await settle(run, { kind: "released" })).toEqual(new Set());
        expect(await stage.store.runs.recallsOpen([run.runId])).toEqual([]);
        expect(await live(task)).toEqual([]);
        expect(await ledger(task), "its time has not come, so it leaves no trace").toEqual([]);
      },
    );

    it.each(["pause", "remove"] as const)("%s also waits for runs recalled before, and may start", async (act) => {
      const task = await alone(`asked-before-${act}`);
      const runId = await stage.enqueue(task);
      const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
      expect(await stage.store.runs.cancel(runId, "enough", stage.nowMs)).toBe("asked");
      expect(await stage.store.tasks[act](`asked-before-${act}`, change(stage.nowMs))).toMatchObject({
        recalled: [runId],
      });
      expect(await stage.store.runs.recallsOpen([runId])).toEqual([runId]);
      await settle(run, { kind: "ended", outcome: "cancelled", result: null, error: null });
      expect(await stage.store.runs.recallsOpen([runId])).toEqual([]);
    });

    it("a claimed run that has started reports that, and continues", async () => {
      const task = await alone("goes-on");
      await stage.enqueue(task);
      const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
      await stage.store.tasks.pause("goes-on", change(stage.nowMs));
      await stage.store.claims.report(session, [
        { runId: run.runId, fence: run.fence, startedMs: stage.nowMs, progress: '{"at":1}' },
      ]);
      expect(await stage.store.runs.recallsOpen([run.runId])).toEqual([]);
      expect(await stage.store.runs.find(run.runId)).toMatchObject({
        state: "claimed",
        startedMs: stage.nowMs,
        progress: { at: 1 },
      });
      expect(await settle(run, succeededVerdict)).toEqual(new Set());
    });

    it("a pause undone at once loses no slot, even if a claim was recalled", async () => {
      const task = await alone("undone", { schedule: every("1s") });
      await stage.plan([task], session, stage.nowMs + 4_000);
      const before = await ledger(task);
      const [first, second] = (await stage.claim(session, [task], before[1])) as [ClaimedRun, ClaimedRun];
      await settle(first, { kind: "released" });
      await stage.store.tasks.pause("undone", change(stage.nowMs));
      await stage.store.tasks.resume("undone", change(stage.nowMs));
      await settle(second, { kind: "released" });
      await stage.plan([task], session, stage.nowMs + 4_000);
      expect(await ledger(task)).toEqual(before);
      expect(await live(task)).toEqual(before);
    });

    it("an enqueue while the task is paused never lets a run start", async () => {
      const task = await alone("pause-race");
      const other = await stage.another();
      for (let round = 0; round < 25; round++) {
        const [, made] = await Promise.all([
          stage.store.tasks.pause("pause-race", change(stage.nowMs)),
          Promise.all(Array.from({ length: 4 }, () => other.runs.enqueue([stage.write(task)], stage.nowMs))),
        ]);
        expect(await stage.claim(session, [task]), `round ${round}`).toEqual([]);
        await stage.store.tasks.resume("pause-race", change(stage.nowMs));
        const claimed = await stage.claim(session, [task]);
        expect(claimed.map(({ runId }) => runId).sort()).toEqual(
          made
            .flat()
            .map(({ runId }) => runId)
            .sort(),
        );
        await stage.store.claims.settle(
          session,
          claimed.map((run) => settlement(run, succeededVerdict, stage.nowMs)),
          stage.nowMs,
        );
      }
    });

    it("waits for a completion in another transaction without flooding the store with queries", async () => {
      const task = await alone("open-completion");
      await stage.enqueue(task);
      const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
      const client = await stage.sql.connect();
      try {
        await client.query("begin");
        await stage.store.claims.settleIn(client, session, settlement(run, succeededVerdict, stage.nowMs), stage.nowMs);
        let done = false;
        const paused = stage.store.tasks.pause("open-completion", change(stage.nowMs)).then((answer) => {
          done = true;
          return answer;
        });
        await until(
          "the pause is stored",
          async () => (await stage.store.tasks.byName("open-completion")).paused !== null,
        );
        expect(done).toBe(false);
        await client.query("commit");
        expect(await paused).toMatchObject({ recalled: [] });
      } finally {
        client.release();
      }
    });

    it("a removed task is gone: unknown, never planned, its runs cancelled; defining it again restores it", async () => {
      const task = await alone("removed", { schedule: every("1s") });
      const waiting = await stage.enqueue(task, { dueMs: stage.nowMs + 1_000 });
      await stage.store.tasks.pause("removed", change(stage.nowMs));
      await stage.store.tasks.remove("removed", change(stage.nowMs));
      expect(await stage.store.runs.find(waiting)).toMatchObject({ state: "cancelled" });
      await expect(stage.store.tasks.byName("removed")).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
      expect(await stage.store.tasks.versions("removed"), "its history stays").toMatchObject([{ version: 1 }]);
      for (const late of ["pause", "resume", "remove"] as const) {
        await expect(stage.store.tasks[late]("removed", change(stage.nowMs)), late).rejects.toMatchObject({
          code: "TASK_UNKNOWN",
        });
      }
      await expect(stage.store.runs.enqueue([stage.write(task)], stage.nowMs)).rejects.toMatchObject({
        code: "TASK_UNKNOWN",
      });
      expect((await stage.store.tasks.list()).map(({ name }) => name)).not.toContain("removed");
      const again = await alone("removed", { schedule: every("1s") });
      expect(again).toMatchObject({ taskId: task.taskId, version: 2, paused: null });
      expect(again.nextSlotMs).not.toBeNull();
      expect(await stage.plan([again], session, stage.nowMs + 2_000)).toBe(2);
    });
  });

  describe("a fixed delay plans its next slot when its run has ended:", () => {
    const periodMs = 10_000;
    async function planned(name: string, options: TaskOptions = {}) {
      const task = await alone(name, { schedule: every(periodMs, { mode: "delay" }), ...options });
      const slotMs = task.nextSlotMs as number;
      await stage.plan([task], session, slotMs);
      expect((await stage.store.tasks.byName(name)).nextSlotMs, "nothing is planned while a run is open").toBeNull();
      return { task, slotMs, next: async () => (await stage.store.tasks.byName(name)).nextSlotMs };
    }

    it.each(["succeeded", "failed", "cancelled"] as const)("%s", async (outcome) => {
      const { task, slotMs, next } = await planned(`delay-${outcome}`);
      const [run] = (await stage.claim(session, [task], slotMs)) as [ClaimedRun];
      await settle(run, { kind: "ended", outcome, result: null, error: null }, slotMs + 7);
      expect(await next()).toBe(slotMs + 7 + periodMs);
    });

    it("not when it is retried", async () => {
      const { task, slotMs, next } = await planned("delay-retry");
      const [run] = (await stage.claim(session, [task], slotMs)) as [ClaimedRun];
      await settle(run, { kind: "retry", dueMs: slotMs + 1, error: null }, slotMs);
      expect(await next()).toBeNull();
    });

    it("cancelled before it was claimed", async () => {
      const { task, slotMs, next } = await planned("delay-unclaimed");
      const [{ id }] = (await stage.rows("select id from $s.run where task_id = $1", [task.taskId])) as [
        { id: number },
      ];
      await stage.store.runs.cancel(id, "", slotMs + 3);
      expect(await next()).toBe(slotMs + 3 + periodMs);
    });

    it("skipped", async () => {
      const { task, slotMs, next } = await planned("delay-skipped", { overlap: "skip" });
      const blocker = await stage.enqueue(task, { dueMs: stage.nowMs });
      const [run] = (await stage.claim(session, [task], stage.nowMs)) as [ClaimedRun];
      expect(run.runId).toBe(blocker);
      await stage.store.plans.admitHeld(slotMs, slotMs);
      expect(await next()).toBe(slotMs + periodMs);
    });

    it("failed with its worker", async () => {
      const { task, slotMs, next } = await planned("delay-lost", { onWorkerLost: "fail" });
      const dying = await stage.session("worker");
      await stage.claim(dying, [task], slotMs);
      await stage.store.sessions.end(dying, null, slotMs, "silent");
      await stage.store.claims.reclaim(dying, 0, slotMs + 9, 10);
      expect(await next()).toBe(slotMs + 9 + periodMs);
    });

    it("ended while the task was paused: the resume plans it", async () => {
      const { task, slotMs, next } = await planned("delay-paused");
      const [run] = (await stage.claim(session, [task], slotMs)) as [ClaimedRun];
      await stage.store.claims.report(session, [
        { runId: run.runId, fence: run.fence, startedMs: slotMs, progress: null },
      ]);
      await stage.store.tasks.pause("delay-paused", change(slotMs));
      await settle(run, succeededVerdict, slotMs + 1);
      expect(await next()).toBeNull();
      await stage.store.tasks.resume("delay-paused", change(slotMs + 50));
      expect(await next()).toBe(slotMs + 50 + periodMs);
    });

    it("edited meanwhile", async () => {
      const { task, slotMs, next } = await planned("delay-edited");
      const [run] = (await stage.claim(session, [task], slotMs)) as [ClaimedRun];
      await stage.store.tasks.save({ ...task.definition, description: "new" }, null, change(slotMs));
      expect(await next(), "the run is still open").toBeNull();
      await settle(run, succeededVerdict, slotMs + 2);
      expect(await next()).toBe(slotMs + 2 + periodMs);
    });
  });
});
