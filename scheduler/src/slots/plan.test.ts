import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { at, compileSchedule, cron, every, type Schedule, type ScheduleSpec } from "../schedule/schedule.ts";
import { defineTask, type TaskOptions } from "../task/task.ts";
import { countSlots, type PlanStep, planTask, slotsPerStep } from "./plan.ts";

const start = Date.UTC(2030, 0, 1);
const minute = 60_000;

/** Plans a task whose next slot is the first one after `fromMs`. */
function plan(schedule: ScheduleSpec, options: TaskOptions, fromMs: number, nowMs: number, untilMs: number): PlanStep {
  const compiled = compileSchedule(schedule);
  const definition = defineTask("t", { schedule, ...options });
  return planTask(definition, compiled, 7, { nextSlotMs: compiled.next(fromMs) as number, nowMs, untilMs });
}
const slots = (step: PlanStep) => step.slots.map(({ slotMs }) => slotMs);

describe("planning", () => {
  it("takes the slots up to the horizon, and leaves the next one open", () => {
    const step = plan(every("1s"), {}, start, start, start + 3_500);
    expect(slots(step)).toEqual([start + 1_000, start + 2_000, start + 3_000]);
    expect(step).toMatchObject({ missed: [], nextSlotMs: start + 4_000 });
    expect(step.slots.every(({ slotMs, dueMs }) => slotMs === dueMs)).toBe(true);
  });

  it("takes nothing if no slot is due before the horizon", () => {
    expect(plan(every("1h"), {}, start, start, start + minute)).toEqual({
      slots: [],
      missed: [],
      nextSlotMs: start + 60 * minute,
    });
  });

  it("takes a single instant once", () => {
    expect(plan(at(start + 5), {}, start, start, start + minute)).toEqual({
      slots: [{ slotMs: start + 5, dueMs: start + 5 }],
      missed: [],
      nextSlotMs: null,
    });
  });

  it("takes one slot of a fixed delay, which is never missed; the next one follows the end of the run", () => {
    const schedule = every("1m", { mode: "delay" });
    expect(plan(schedule, { misfire: "skip" }, start, start + 90 * minute, start + 91 * minute)).toEqual({
      slots: [{ slotMs: start + minute, dueMs: start + minute }],
      missed: [],
      nextSlotMs: null,
    });
    expect(plan(schedule, {}, start, start, start + 1).slots).toEqual([]);
  });

  it("jitter moves the due time but not the slot, equally in every process", () => {
    const schedule = every("1m", { jitter: "30s" });
    const step = plan(schedule, {}, start, start, start + 10 * minute);
    for (const { slotMs, dueMs } of step.slots) {
      expect(dueMs).toBeGreaterThanOrEqual(slotMs);
      expect(dueMs).toBeLessThanOrEqual(slotMs + 30_000);
    }
    expect(new Set(step.slots.map(({ slotMs, dueMs }) => dueMs - slotMs)).size).toBeGreaterThan(3);
    expect(plan(schedule, {}, start, start, start + 10 * minute)).toEqual(step);
  });

  it("bounds a step; further slots follow in the next step", () => {
    const step = plan(every("1s"), {}, start, start, start + 60 * minute);
    expect(step.slots).toHaveLength(slotsPerStep);
    expect(step.nextSlotMs).toBe(start + (slotsPerStep + 1) * 1_000);
  });

  describe("misfire", () => {
    // The process was stopped for ten minutes; the current time is half a minute after a slot.
    const nowMs = start + 10 * minute + 30_000;
    const away = (misfire: TaskOptions["misfire"], now = nowMs) =>
      plan(every("1m"), { misfire }, start, now, now + 1_000);

    it("a slot that is late by less than the misfire time is run, not missed", () => {
      const step = plan(
        every("1s"),
        { misfire: { policy: "skip", after: "10s" } },
        start,
        start + 10_500,
        start + 11_000,
      );
      expect(slots(step)).toHaveLength(11);
      expect(step.missed).toEqual([]);
    });

    it("fire_once runs the newest slot, and reports the others as one range", () => {
      const step = away("fire_once");
      expect(slots(step)).toEqual([start + 10 * minute]);
      expect(step.missed).toEqual([
        { fromMs: start + minute, toMs: start + 9 * minute, count: 9, reason: "misfire: fire_once" },
      ]);
      expect(step.nextSlotMs).toBe(start + 11 * minute);
    });

    it("fire_once with a single late slot misses nothing", () => {
      const step = plan(every("1h"), { misfire: "fire_once" }, start, start + 61 * minute, start + 61 * minute);
      expect(step).toEqual({
        slots: [{ slotMs: start + 60 * minute, dueMs: start + 60 * minute }],
        missed: [],
        nextSlotMs: start + 120 * minute,
      });
    });

    it("skip drops late slots, and runs those that are not late", () => {
      const step = away({ policy: "skip", after: "35s" });
      expect(slots(step)).toEqual([start + 10 * minute]);
      expect(step.missed).toEqual([
        { fromMs: start + minute, toMs: start + 9 * minute, count: 9, reason: "misfire: skip" },
      ]);
      expect(away("skip").missed).toMatchObject([{ toMs: start + 10 * minute, count: 10 }]);
    });

    it("all runs every slot, or the newest up to its cap, at its rate", () => {
      expect(slots(away("all"))).toHaveLength(10);
      const capped = away({ policy: "all", cap: 3, perSecond: 2 });
      expect(slots(capped)).toEqual([8, 9, 10].map((n) => start + n * minute));
      expect(capped.slots.map(({ dueMs }) => dueMs)).toEqual([nowMs, nowMs + 500, nowMs + 1_000]);
      expect(capped.missed).toEqual([
        { fromMs: start + minute, toMs: start + 7 * minute, count: 7, reason: "misfire: all, over its cap" },
      ]);
    });

    it("within drops slots that are later than its limit, and leaves later slots to the policy", () => {
      const late = { fromMs: start + minute, toMs: start + 5 * minute, count: 5, reason: "misfire: later than within" };
      const all = away({ policy: "all", within: "4m30s", cap: 3 });
      expect(slots(all)).toEqual([8, 9, 10].map((n) => start + n * minute));
      const overCap = {
        fromMs: start + 6 * minute,
        toMs: start + 7 * minute,
        count: 2,
        reason: "misfire: all, over its cap",
      };
      expect(all.missed).toEqual([late, overCap]);
      const once = away({ policy: "fire_once", within: "4m30s" });
      expect(slots(once)).toEqual([start + 10 * minute]);
      expect(once.missed).toMatchObject([late, { count: 4, reason: "misfire: fire_once" }]);
      const none = away({ policy: "all", within: "20s", after: "10s" });
      expect(slots(none)).toEqual([]);
      expect(none.missed).toEqual([{ ...late, toMs: start + 10 * minute, count: 10 }]);
      expect(away({ policy: "all", within: "1h" })).toEqual(away("all"));
    });

    it("years of a per-second task become one range plus the counted newest slots, with few slots examined", () => {
      const schedule = cron("* * * * * *");
      const compiled = compileSchedule(schedule);
      let asked = 0;
      const counted: Schedule = {
        next: (afterMs) => {
          asked++;
          return compiled.next(afterMs);
        },
        previous: (beforeMs) => {
          asked++;
          return compiled.previous(beforeMs);
        },
        words: () => compiled.words(),
      };
      const nowMs = start + 3 * 365 * 86_400_000;
      const span = { nextSlotMs: start + 1_000, nowMs, untilMs: nowMs };
      const step = planTask(defineTask("t", { schedule }), counted, 7, span);
      expect(step.slots).toHaveLength(1);
      const [runs] = slots(step) as [number];
      const first = runs - 10_000 * 1_000;
      expect(step.missed).toMatchObject([
        { fromMs: start + 1_000, toMs: first - 1_000, count: null },
        { fromMs: first, toMs: runs - 1_000, count: 10_000 },
      ]);
      expect(asked, "of 94,608,000").toBeLessThan(25_000);
    });

    it("neither loses nor invents a slot, whatever the policy and however often it is called", () => {
      const policies = fc.record({
        policy: fc.constantFrom("fire_once" as const, "skip" as const, "all" as const),
        after: fc.integer({ min: 1_000, max: 120_000 }),
        cap: fc.integer({ min: 1, max: 20 }),
        within: fc.option(fc.integer({ min: 120_001, max: 600_000 })),
      });
      const waits = fc.array(fc.integer({ min: 0, max: 400_000 }), { minLength: 1, maxLength: 12 });
      fc.assert(
        fc.property(policies, waits, fc.integer({ min: 1_000, max: 90_000 }), (misfire, pauses, period) => {
          const schedule = every(period);
          const compiled = compileSchedule(schedule);
          const definition = defineTask("t", { schedule, misfire });
          let next = compiled.next(start) as number;
          let nowMs = start;
          const seen: number[] = [];
          for (const pause of pauses) {
            nowMs += pause;
            const step = planTask(definition, compiled, 1, { nextSlotMs: next, nowMs, untilMs: nowMs + 15_000 });
            for (const { fromMs, toMs, count } of step.missed) {
              expect(count).toBe(countSlots(compiled, fromMs, toMs));
              for (let slot: number = fromMs; slot <= toMs; slot = compiled.next(slot) as number) seen.push(slot);
            }
            seen.push(...slots(step));
            expect(Math.min(...slots(step))).toBeGreaterThanOrEqual(nowMs - (misfire.within ?? nowMs));
            next = step.nextSlotMs as number;
          }
          const due: number[] = [];
          for (let slot = compiled.next(start) as number; slot < next; slot = compiled.next(slot) as number)
            due.push(slot);
          expect(seen.sort((a, b) => a - b)).toEqual(due);
          expect(next).toBeGreaterThan(nowMs);
        }),
      );
    });
  });
});

describe("counting slots", () => {
  it("includes both ends, and gives up if there are too many", () => {
    const schedule = compileSchedule(every("1m"));
    expect(countSlots(schedule, start, start + 5 * minute)).toBe(6);
    expect(countSlots(schedule, start + 1, start + 5 * minute)).toBe(5);
    expect(countSlots(schedule, start, start + 5 * minute, 6)).toBe(6);
    expect(countSlots(schedule, start, start + 5 * minute, 5)).toBeNull();
    expect(countSlots(compileSchedule(at(start)), start, start)).toBe(1);
  });
});
