import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { at, cron, every } from "../../src/schedule/schedule.ts";
import type { PlanWrite } from "../../src/slots/plan-store.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, dayMs, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

describe.each(everyPostgres())("plans on $title", (server) => {
  let stage: Stage;
  let session: number;

  beforeAll(async () => {
    stage = await openStage(server);
  });
  beforeEach(async () => {
    session = await stage.session();
  });
  afterAll(() => stage.close());

  /** Returns the slots of a task in the ledger and in its runs. */
  async function slotsAndRuns(task: TaskRecord): Promise<{ slots: number[]; runs: number[] }> {
    const slots = await stage.rows("select slot_ms from $s.slot where task_id = $1 order by 1", [task.taskId]);
    const runs = await stage.rows("select slot_ms from $s.run where task_id = $1 order by 1", [task.taskId]);
    return { slots: slots.map((row) => row.slot_ms as number), runs: runs.map((row) => row.slot_ms as number) };
  }

  it("accept a step once: ledger, runs and next slot move together", async () => {
    const task = await stage.task("once", { schedule: every("1s"), slotPayload: { a: 1 }, priority: 7 });
    const [step] = (await stage.steps([task], stage.nowMs + 5_000)) as [PlanWrite];
    const first = await stage.store.plans.accept({ sessionId: session, term: null }, [step], stage.nowMs);
    expect(first).toEqual({ taken: new Set([task.taskId]), accepted: 5 });
    const again = await stage.store.plans.accept({ sessionId: session, term: null }, [step], stage.nowMs);
    expect(again).toEqual({ taken: new Set(), accepted: 0 });
    const expected = step.slots.map(({ slotMs }) => slotMs);
    expect(await slotsAndRuns(task)).toEqual({ slots: expected, runs: expected });
    expect((await stage.store.tasks.byName("once")).nextSlotMs).toBe(step.newNextSlotMs);
    const [run] = await stage.rows("select payload, priority, state, source from $s.run where task_id = $1", [
      task.taskId,
    ]);
    expect(run).toEqual({ payload: { a: 1 }, priority: 7, state: 2, source: 1 });
  });

  it("refuse a step for another version, and a step whose next slot is not the plan's", async () => {
    const task = await stage.task("versions", { schedule: every("1s") });
    const [step] = (await stage.steps([task], stage.nowMs + 2_000)) as [PlanWrite];
    const authority = { sessionId: session, term: null };
    for (const wrong of [
      { ...step, version: 2 },
      { ...step, nextSlotMs: step.nextSlotMs - 1_000 },
    ]) {
      const result = await stage.store.plans.accept(authority, [wrong], stage.nowMs);
      expect(result).toEqual({ taken: new Set(), accepted: 0 });
    }
    expect(await slotsAndRuns(task)).toEqual({ slots: [], runs: [] });
  });

  it("assign each slot to one of many planners, round after round", async () => {
    const tasks: TaskRecord[] = [];
    for (let i = 0; i < 20; i++) {
      tasks.push(
        await stage.task(`raced-${i}`, { schedule: every("100ms"), ...(i % 4 === 0 ? { overlap: "queue" } : {}) }),
      );
    }
    const stores = [stage.store, await stage.another(), await stage.another()];
    const term = await stage.lead(session);
    const planners = await Promise.all(
      stores.map(async (store, i) => ({ store, session: i === 0 ? session : await stage.session() })),
    );
    let accepted = 0;
    for (let round = 1; round <= 40; round++) {
      const untilMs = stage.nowMs + round * 300;
      const steps = await stage.steps(tasks, untilMs);
      const results = await Promise.all(
        planners.map(({ store, session: sessionId }, i) =>
          store.plans.accept(
            { sessionId, term: i === 0 ? term : null },
            i === 1 ? steps.toReversed() : steps,
            stage.nowMs,
          ),
        ),
      );
      const takers = results.flatMap(({ taken }) => [...taken]);
      expect(new Set(takers).size, "a task's step was taken twice").toBe(takers.length);
      accepted += results.reduce((sum, result) => sum + result.accepted, 0);
    }
    // In the last round all planners may have skipped a task that another had locked; here a single planner plans these tasks.
    accepted += await stage.plan(tasks, session, stage.nowMs + 40 * 300);
    expect(accepted).toBe(20 * 120);
    for (const task of tasks) {
      const { slots, runs } = await slotsAndRuns(task);
      expect(runs).toEqual(slots);
      expect(slots).toHaveLength(120);
      expect(slots).toEqual(slots.map((_, i) => (slots[0] as number) + i * 100));
    }
  });

  it("refuse a term that is over or unknown, and an ended session", async () => {
    const task = await stage.task("fenced", { schedule: every("1s") });
    const writes = await stage.steps([task], stage.nowMs + 2_000);
    const old = await stage.session();
    const oldTerm = await stage.lead(old);
    const next = await stage.session();
    const term = await stage.lead(next);
    expect(term).toBe(oldTerm + 1);
    const refused = [
      { sessionId: old, term: oldTerm },
      { sessionId: next, term: oldTerm },
      { sessionId: old, term },
      { sessionId: next, term: term + 1 },
      { sessionId: old, term: null },
      { sessionId: 999_999, term: null },
    ];
    for (const authority of refused) {
      await expect(stage.store.plans.accept(authority, writes, stage.nowMs)).rejects.toMatchObject({
        code: "FENCE_STALE",
      });
    }
    expect(await slotsAndRuns(task)).toEqual({ slots: [], runs: [] });
    const { accepted } = await stage.store.plans.accept({ sessionId: next, term }, writes, stage.nowMs);
    expect(accepted).toBe(2);
    expect(
      (await stage.store.history.slots(task.taskId, 0, stage.nowMs * 2, 10)).slots.map((slot) => slot.term),
    ).toEqual([term, term]);
  });

  it("let no later term begin before an accepted step has been committed", async () => {
    const task = await stage.task("in-flight", { schedule: every("1s") });
    const leader = await stage.session();
    const term = await stage.lead(leader);
    const heir = await stage.session();
    const client = await stage.sql.connect();
    try {
      // Holds the same lock as a planning statement of the leader that is still running.
      await client.query("begin");
      await client.query(`select from ${stage.schema}.leadership where term = $1 for share`, [term]);
      await stage.store.sessions.end(leader, null, stage.nowMs, "gone");
      let elected: number | null | undefined;
      const campaign = stage.store.sessions
        .campaign(heir, "heir", { term, sessionId: leader }, stage.nowMs)
        .then((won) => {
          elected = won;
        });
      // The campaign must wait for that lock, so the statement ends before the term does.
      await expect
        .poll(
          async () =>
            (
              await stage.one(
                "select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%leadership%'",
                [stage.schema],
              )
            ).n,
        )
        .toBe(1);
      expect(elected).toBeUndefined();
      await client.query("commit");
      await campaign;
      expect(elected).toBe(term + 1);
    } finally {
      client.release();
    }
    const writes = await stage.steps([task], stage.nowMs + 1_000);
    const late = stage.store.plans.accept({ sessionId: leader, term }, writes, stage.nowMs);
    await expect(late).rejects.toMatchObject({ code: "FENCE_STALE" });
  });

  it("accept 10,000 tasks in a few statements, whatever else is planned", async () => {
    const { groupId } = await stage.task("many-pattern");
    // Inserts ten thousand tasks by SQL, because saving them one by one is not part of this test.
    await stage.rows(
      `with made as (
         insert into $s.task (name, version, group_id, definition, definition_text, gate, created_ms, changed_ms)
         select 'many-' || i, 1, $1, t.definition, t.definition_text, 0, 0, 0
         from generate_series(1, 10000) i, $s.task t where t.name = 'many-pattern' returning id)
       insert into $s.plan (task_id, version, next_slot_ms) select id, 1, $2 from made`,
      [groupId, stage.nowMs + 60_000],
    );
    const due = (await stage.store.plans.due(stage.nowMs + 60_000, 100_000)).filter(
      (plan) => plan.nextSlotMs === stage.nowMs + 60_000,
    );
    expect(due).toHaveLength(10_000);
    const writes = due.map((plan) => ({
      ...plan,
      newNextSlotMs: plan.nextSlotMs + 60_000,
      slots: [{ slotMs: plan.nextSlotMs, dueMs: plan.nextSlotMs }],
      missed: [],
      gated: false,
    }));
    const statements = vi.spyOn(pg.Client.prototype, "query");
    const { accepted } = await stage.store.plans.accept({ sessionId: session, term: null }, writes, stage.nowMs);
    const sent = statements.mock.calls.length;
    statements.mockRestore();
    expect(accepted).toBe(10_000);
    // Through a pooler each statement is sent as a transaction: begin, statement, commit.
    expect(sent).toBe(server.url === server.direct ? 1 : 3);
    const { xids } = await stage.one("select count(distinct xmin::text) as xids from $s.run where due_ms = $1", [
      stage.nowMs + 60_000,
    ]);
    expect(xids, "the runs came by one transaction").toBe(1);
  });

  it("accept slots of days without a partition: weeks ago, and beyond those created ahead", async () => {
    const weekly = await stage.task(
      "weekly",
      { schedule: cron("0 0 * * 1"), misfire: { policy: "all", cap: 10 } },
      stage.nowMs - 30 * dayMs,
    );
    const before = weekly.nextSlotMs as number;
    expect(before).toBeLessThan(stage.nowMs - 20 * dayMs);
    expect(await stage.plan([weekly], session, stage.nowMs)).toBeGreaterThanOrEqual(4);
    const { slots, runs } = await slotsAndRuns(weekly);
    expect(slots[0]).toBe(before);
    expect(runs).toEqual(slots);

    const moment = stage.nowMs - 45 * dayMs;
    const once = await stage.task("at-in-the-past", { schedule: at(moment) }, moment - 1_000);
    expect(await stage.plan([once], session, stage.nowMs)).toBe(1);
    expect((await slotsAndRuns(once)).slots).toEqual([moment]);

    const far = await stage.task("far-ahead", { schedule: at(stage.nowMs + 40 * dayMs) });
    expect(await stage.plan([far], session, stage.nowMs + 50 * dayMs)).toBe(1);
  });

  it("create the same missing partition for two concurrent planners", async () => {
    const moment = stage.nowMs - 80 * dayMs;
    const tasks = [
      await stage.task("past-1", { schedule: at(moment) }, moment - 1_000),
      await stage.task("past-2", { schedule: at(moment + 1) }, moment - 1_000),
    ];
    const other = await stage.another();
    const steps = await Promise.all(tasks.map((task) => stage.steps([task], stage.nowMs)));
    const results = await Promise.all(
      steps.map((writes, i) =>
        (i === 0 ? stage.store : other).plans.accept({ sessionId: session, term: null }, writes, stage.nowMs),
      ),
    );
    expect(results.map(({ accepted }) => accepted)).toEqual([1, 1]);
  });

  it("record missed slots as a range, and count them", async () => {
    // The time is half a minute after a slot, so that no slot is due but not yet missed.
    const nowMs = Math.floor(stage.nowMs / 60_000) * 60_000 + 30_000;
    const task = await stage.task("missed", { schedule: every("1m"), misfire: "skip" }, nowMs - 3_600_000);
    await stage.plan([task], session, nowMs, nowMs);
    const { slots, ranges } = await stage.store.history.slots(task.taskId, 0, stage.nowMs + dayMs, 100);
    expect(slots).toEqual([]);
    expect(ranges).toHaveLength(1);
    const [range] = ranges;
    expect(range).toMatchObject({ outcome: "missed", reason: "misfire: skip", version: 1, fromMs: task.nextSlotMs });
    const count = range?.slots as number;
    expect((range?.toMs as number) - (range?.fromMs as number)).toBe((count - 1) * 60_000);
    expect((await stage.store.tasks.counters([task.taskId])).get(task.taskId)).toMatchObject({ missed: count });
  });

  it("list due plans, earliest first, without those of paused tasks", async () => {
    const soon = await stage.task("due-soon", { schedule: at(stage.nowMs + 100) });
    const later = await stage.task("due-later", { schedule: at(stage.nowMs + 200) });
    const paused = await stage.task("due-paused", { schedule: at(stage.nowMs + 50) });
    await stage.store.tasks.pause("due-paused", change(stage.nowMs));
    const ids = new Set([soon.taskId, later.taskId, paused.taskId]);
    const due = (await stage.store.plans.due(stage.nowMs + 200, 10_000)).filter(({ taskId }) => ids.has(taskId));
    expect(due.map(({ taskId }) => taskId)).toEqual([soon.taskId, later.taskId]);
  });

  // At the hour 1, the calendar has moved slots of the holiday to the next midnight, and these slots ran while the clock was ahead.
  it.each([1, 20])(
    "after cluster time went back, tasks are planned from now on; slots that ran are kept, other slots run: at %s:00",
    async (hour) => {
      const hourMs = 3_600_000;
      const stageOfDay = await openStage(server, { hour });
      const { store, nowMs } = stageOfDay;
      // The cluster's time is a day ahead at first; all slots up to then are planned and run by that time.
      const aheadMs = nowMs + dayMs;
      const today = new Date(nowMs).toISOString().slice(0, 10);
      await store.calendars.set("days", { zone: "UTC", weekend: [], holidays: [today] }, change(nowMs));
      const tasks = await Promise.all([
        stageOfDay.task("hourly", { schedule: every("1h") }),
        stageOfDay.task("skips", { schedule: every("1h"), misfire: "skip" }),
        stageOfDay.task("hidden", { schedule: every("1h"), blackout: [{ from: "01:00", to: "23:30" }] }),
        stageOfDay.task("moved", { schedule: cron("0 */2 * * *"), calendar: { name: "days", otherwise: "next" } }),
        stageOfDay.task("once", { schedule: at(nowMs + 2 * hourMs), misfire: "skip" }),
        stageOfDay.task("delayed", { schedule: every("10m", { mode: "delay" }) }),
        stageOfDay.task("paused", { schedule: every("1h") }),
        stageOfDay.task("next-month", { schedule: at(nowMs + 30 * dayMs) }),
      ]);
      await store.tasks.pause("paused", change(nowMs));
      const ahead = await stageOfDay.session();
      await stageOfDay.plan(tasks, ahead, aheadMs + hourMs, aheadMs);
      const ran = await stageOfDay.claim(ahead, tasks, aheadMs + hourMs);
      await store.claims.settle(
        ahead,
        ran.map((run) => settlement(run, succeededVerdict, aheadMs + hourMs)),
        aheadMs + hourMs,
      );
      const hourly = tasks[0] as TaskRecord;
      await stageOfDay.enqueue(hourly, { dueMs: aheadMs + 2 * hourMs }, aheadMs + hourMs);
      await store.sessions.end(ahead, null, aheadMs + hourMs, "stopped");

      const backMs = nowMs + 60_000;
      const alarms = async (atMs: number) => {
        const thresholds = { lateMs: 1, overdueMs: 1, unfiredMs: 1, stuckMs: 1, leaderlessMs: 1, summaryMs: 60_000 };
        await store.alarms.look(["rewound"], thresholds, { rewound: ["ops"] }, atMs);
        return (await store.alarms.open()).map(({ rule, text }) => `${rule}: ${text}`);
      };
      expect(await store.sessions.noteTimeBack(backMs)).toMatchObject({
        reachedMs: aheadMs + hourMs,
        replanned: false,
      });
      expect(await alarms(backMs)).toEqual([expect.stringMatching(/^rewound: it is 24\.98 h behind what it has been/)]);
      const done = await store.tasks.replanAhead({ author: "ann", reason: "db-1 was ahead", nowMs: backMs });
      expect(done).toEqual({ reachedMs: aheadMs + hourMs, tasks: 6, waiting: 1 });
      expect(await store.tasks.replanAhead(change(backMs))).toMatchObject({ tasks: 0 });
      expect(await store.sessions.noteTimeBack(backMs)).toMatchObject({ replanned: true });
      expect(await alarms(backMs + 1)).toEqual([]);
      expect((await store.audit.list({ about: "cluster" }, Number.MAX_SAFE_INTEGER, 10)).at(-1)).toMatchObject({
        act: "replan",
        who: "ann",
        why: "db-1 was ahead",
      });
      expect(await store.tasks.byName("paused")).toMatchObject({ nextSlotMs: null, version: 1 });
      expect(await store.tasks.byName("next-month")).toMatchObject({ version: 1 });
      expect((await store.tasks.byName("delayed")).nextSlotMs).toBe(Math.round(backMs) + 600_000);

      const session = await stageOfDay.session();
      const untilMs = nowMs + 2 * dayMs;
      for (let atMs = backMs; atMs < untilMs; atMs += 12 * hourMs)
        await stageOfDay.plan(tasks, session, atMs + 12 * hourMs, atMs);
      const rowsOf = (name: string) =>
        stageOfDay.rows<{ atMs: number; outcome: number }>(
          `select slot_ms as "atMs", outcome from $s.slot where task_id = (select id from $s.task where name = $1)
         and slot_ms between $2 and $3 order by 1`,
          [name, backMs, untilMs],
        );
      const hours = Array.from({ length: 48 }, (_, hour) => (Math.floor(backMs / hourMs) + 1 + hour) * hourMs);
      for (const name of ["hourly", "skips", "hidden"])
        expect(
          (await rowsOf(name)).map(({ atMs }) => atMs),
          name,
        ).toEqual(hours.filter((atMs) => atMs <= untilMs));
      expect(
        new Set((await rowsOf("hidden")).map(({ outcome }) => outcome)),
        "run, and skipped by the blackout",
      ).toEqual(new Set([1, 2]));
      expect(await rowsOf("once")).toEqual([{ atMs: nowMs + 2 * hourMs, outcome: 1 }]);
      const twice = await stageOfDay.rows(
        `select task_id, slot_ms from (select task_id, slot_ms from $s.run where slot_ms is not null
         union all select task_id, slot_ms from $s.run_history where slot_ms is not null) r group by 1, 2 having count(*) > 1`,
      );
      expect(twice).toEqual([]);
      const nominal = await stageOfDay.rows(
        "select nominal_ms from $s.moved_slot group by task_id, nominal_ms having count(*) > 1",
      );
      expect(nominal).toEqual([]);
      await stageOfDay.close();
    },
  );
});
