import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import { every } from "../../src/schedule/schedule.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import {
  followEnds,
  followEvents,
  followTable,
  lossEvents,
  lossPolicies,
  lossTable,
  misfirePolicies,
  misfireTable,
  overlapEvents,
  overlapPolicies,
  overlapTable,
} from "../oracle/policy-tables.ts";
import { postgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

/** Checks each cell of the tables in docs/tasks/policies.md against the store. */
describe("policies", () => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(postgres());
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  let made = 0;
  const task = (options: TaskOptions) => stage.task(`p${++made}`, { group: `p${made}`, grace: 0, ...options });
  const claim = async (of: TaskRecord, by = session, untilMs = stage.nowMs) =>
    (await stage.claim(by, [of], untilMs))[0] as ClaimedRun;
  const end = (run: ClaimedRun, verdict: Verdict = succeededVerdict) =>
    stage.store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
  const stateOf = async (runId: number) => (await stage.store.runs.find(runId)).state;
  const pairs = <A, B>(events: readonly A[], policies: readonly B[]) =>
    events.flatMap((event) => policies.map((policy) => [event, policy] as const));

  describe("overlap", () => {
    const before: Record<(typeof overlapEvents)[number], (of: TaskRecord) => Promise<number>> = {
      "has ended": async (of) => ended(of, succeededVerdict),
      "is ready, and due": (of) => stage.enqueue(of),
      "is ready, and due later": (of) => stage.enqueue(of, { dueMs: stage.nowMs + 60_000 }),
      "is under way": async (of) => {
        const runId = await stage.enqueue(of);
        await claim(of);
        return runId;
      },
      "waits for its next try": (of) => ended(of, { kind: "retry", dueMs: stage.nowMs + 60_000, error: null }),
      "is undecided": (of) => ended(of, { kind: "retry", dueMs: stage.nowMs, error: null, ask: true }),
    };
    async function ended(of: TaskRecord, verdict: Verdict): Promise<number> {
      const runId = await stage.enqueue(of);
      await end(await claim(of), verdict);
      return runId;
    }

    it.each(pairs(overlapEvents, overlapPolicies))("one %s: %s", async (event, overlap) => {
      const of = await task({ overlap });
      const first = await before[event](of);
      const was = await stateOf(first);
      const second = await stage.enqueue(of);
      await stage.store.plans.admitHeld(stage.nowMs, stage.nowMs);
      const recalls = await stage.store.claims.recalls(session);
      const is = await stateOf(first);
      const fate = recalls.some(({ runId }) => runId === first) ? "asked to stop" : is === was ? null : is;
      expect([await stateOf(second), fate]).toEqual(overlapTable[event][overlap]);
    });

    it("{ queue: n }: the first n wait, later ones are skipped", async () => {
      const of = await task({ overlap: { allow: 2, queue: 2 } });
      const many = async (count: number, at = 0) => {
        const runIds: number[] = [];
        for (let i = 0; i < count; i++) runIds.push(await stage.enqueue(of, { dueMs: stage.nowMs + at }));
        return runIds;
      };
      const states = (runIds: number[]) => Promise.all(runIds.map(stateOf));
      const ran = await many(1);
      const run = await claim(of);
      const [second, ...others] = await many(5);
      expect(await states([...ran, second as number, ...others])).toEqual([
        "claimed",
        "ready",
        "held",
        "held",
        "skipped",
        "skipped",
      ]);
      const [later] = await many(1, 60_000);
      expect(await stateOf(later as number)).toBe("held");
      await end(run, succeededVerdict);
      expect(await states(others)).toEqual(["ready", "held", "skipped", "skipped"]);
      await stage.store.plans.admitHeld(stage.nowMs + 60_000, stage.nowMs + 60_000);
      expect(await stateOf(later as number), "one waits, and it is the second").toBe("held");
      const [third, fourth] = await many(2);
      expect(await states([third as number, fourth as number])).toEqual(["held", "skipped"]);
      // A run that comes due while the maximum number of runs wait is skipped, even though it was enqueued before them.
      await stage.store.plans.admitHeld(stage.nowMs + 60_000, stage.nowMs + 60_000);
      expect(await stateOf(later as number)).toBe("skipped");
    });

    it("{ queue: n }: a run that was attempted waits, however many other runs wait", async () => {
      const of = await task({ overlap: { queue: 1 } });
      const first = await ended(of, { kind: "retry", dueMs: stage.nowMs, error: null });
      await stage.store.tasks.pause(of.name, { author: "t", reason: "", nowMs: stage.nowMs });
      await stage.store.tasks.resume(of.name, { author: "t", reason: "", nowMs: stage.nowMs });
      const [second, third] = [await stage.enqueue(of), await stage.enqueue(of)];
      expect(await Promise.all([first, second, third].map(stateOf))).toEqual(["ready", "held", "skipped"]);
    });
  });

  describe("misfire, of slots not claimed in time", () => {
    const slots = {
      "a planned slot, unclaimed, late by less": [1, 4_000],
      "a planned slot, unclaimed, later": [1, 6_000],
      "two planned slots, unclaimed, later": [2, 16_000],
      "two planned slots, unclaimed, both later than `within`": [2, 28_000],
    } as const;
    it.each(pairs(Object.keys(slots) as (keyof typeof slots)[], misfirePolicies))("%s: %s", async (event, policy) => {
      const [count, lateMs] = slots[event];
      const within = event.includes("within") ? { within: "17s" } : {};
      const misfire = { policy, after: "5s", ...within } as const;
      const of = await task({ schedule: every("10s", { anchor: stage.nowMs }), misfire });
      const first = of.nextSlotMs as number;
      const planner = await stage.session();
      expect(await stage.plan([of], planner, first + (count - 1) * 10_000)).toBe(count);
      await stage.claim(session, [of], first + lateMs);
      const { slots: told } = await stage.store.history.slots(of.taskId, 0, first + 60_000, 10);
      const fates = told.toSorted((a, b) => a.slotMs - b.slotMs).map(({ outcome }) => outcome);
      expect(fates).toEqual(misfireTable[event][policy]);
    });
  });

  describe("misfire, of slots waiting for a concurrency slot", () => {
    const events = {
      "two slots that wait for a place, later": {},
      "two slots that wait for a place, later, `waiting: true`": { waiting: true },
      "two slots that wait for a place, later than `within`, `waiting: true`": { waiting: true, within: "5500ms" },
    } as const;
    const overlaps = { "a queue": { overlap: "queue" }, "a limit": { limit: { perKey: 1 } } } as const;
    const cases = pairs(Object.keys(events) as (keyof typeof events)[], misfirePolicies).flatMap((pair) =>
      (Object.keys(overlaps) as (keyof typeof overlaps)[]).map((of) => [...pair, of] as const),
    );
    it.each(cases)("%s: %s, of %s", async (event, policy, limited) => {
      const misfire = { policy, after: "5s", ...events[event] } as const;
      const schedule = every("10s", { anchor: stage.nowMs });
      const of = await task({ schedule, misfire, ...overlaps[limited] });
      const first = of.nextSlotMs as number;
      const planner = await stage.session();
      expect(await stage.plan([of], planner, first)).toBe(1);
      await stage.store.plans.admitHeld(first, first);
      const [running] = (await stage.claim(session, [of], first)) as [ClaimedRun];
      expect(await stage.plan([of], planner, first + 20_000)).toBe(2);
      await stage.store.plans.admitHeld(first + 20_000, first + 20_000);
      // Both later runs are due and wait for the first, which ends only when they are already late.
      await stage.store.claims.settle(session, [settlement(running, succeededVerdict, first + 26_000)], first + 26_000);
      const { slots: told } = await stage.store.history.slots(of.taskId, first + 1, first + 60_000, 10);
      const fates = told.toSorted((a, b) => a.slotMs - b.slotMs).map(({ outcome }) => outcome);
      expect(fates).toEqual(misfireTable[event][policy]);
      const started = await stage.claim(session, [of], first + 26_000);
      expect(started.length, "what is left begins").toBe(fates.includes("run") ? 1 : 0);
    });
  });

  describe("onWorkerLost", () => {
    it.each(pairs(lossEvents, lossPolicies))("%s: %s", async (event, onWorkerLost) => {
      const of = await task({ onWorkerLost });
      const dying = await stage.session("worker");
      const later = event === "a run due after its end";
      const runId = await stage.enqueue(of, { dueMs: stage.nowMs + (later ? 500 : 0) });
      if (event === "a run that lost two workers before")
        await stage.sql.query(`update ${stage.schema}.run set losses = 2 where id = $1`, [runId]);
      const run = await claim(of, dying, stage.nowMs + 500);
      const started = { runId, fence: run.fence, startedMs: stage.nowMs, progress: null };
      if (!later && event !== "a run not reported as started") await stage.store.claims.report(dying, [started]);
      if (event === "a run whose cancellation was asked for") await stage.store.runs.cancel(runId, "", stage.nowMs);
      if (event === "a run of a task removed since") await stage.store.tasks.remove(of.name, change(stage.nowMs));
      await stage.store.sessions.end(dying, null, stage.nowMs, "silent");
      expect(await stage.store.claims.reclaim(dying, 0, stage.nowMs, 10)).toHaveLength(1);
      const { state, attempt } = await stage.store.runs.find(runId);
      expect(later ? `${state}, as if not claimed` : state).toBe(lossTable[event][onWorkerLost]);
      if (later) expect(attempt).toBe(0);
    });
  });

  describe("after", () => {
    it.each(pairs(followEvents, followEnds))("a run that %s, on %s", async (event, on) => {
      const of = await task({ overlap: "skip" });
      const follower = await task({ after: { tasks: of.name, on } });
      await stage.enqueue(of);
      const run = await claim(of);
      const failed = { kind: "ended", result: null, error: null, outcome: "failed" } as const;
      if (event === "succeeds") await end(run);
      if (event === "fails") await end(run, failed);
      if (event === "is tried again") await end(run, { kind: "retry", dueMs: stage.nowMs, error: null });
      if (event === "is cancelled") await end(run, { ...failed, outcome: "cancelled" });
      if (event === "is skipped") {
        const second = await stage.enqueue(of);
        expect(await stateOf(second)).toBe("skipped");
      }
      expect((await stage.claim(session, [follower])).length > 0).toBe(followTable[event][on]);
    });
  });
});
