import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rounds } from "../../test/support/long.ts";
import type { Calendar } from "../schedule/calendar.ts";
import { at, cron, every, manual } from "../schedule/schedule.ts";
import { plannedSchedule } from "../schedule/slot-rules.ts";
import { defineTask } from "../task/task.ts";
import type { TaskRecord } from "../task/task-record.ts";
import { comingSlots, judgedSlot } from "./coming-slots.ts";
import { planTask } from "./plan.ts";
import { nextDue, nextOf, scheduleOf } from "./upcoming-slots.ts";

const dayMs = 86_400_000;
const calendar: Calendar = { name: "de", version: 1, zone: "Europe/Berlin", weekend: [0, 6], holidays: ["2030-01-01"] };

it("previews show for each slot what the planner does, also with jitter in or near blackouts", () => {
  const options = fc.record({
    schedule: fc.constantFrom(
      cron("0 */5 * * *"),
      cron("30 9 * * *", { jitter: "2h" }),
      every("7h", { jitter: "1h" }),
      every("20m"),
      cron("*/20 * * * *", { jitter: "3h" }),
    ),
    calendar: fc.option(fc.record({ name: fc.constant("de"), otherwise: fc.constantFrom("skip", "next", "previous") })),
    blackout: fc.array(
      fc.record({
        from: fc.constantFrom("06:00", "08:00", "10:00", "22:00"),
        to: fc.constantFrom("11:00", "06:30", "09:00"),
        // biome-ignore lint/suspicious/noThenProperty: never awaited.
        then: fc.constantFrom("skip", "delay"),
      }),
      { maxLength: 3 },
    ),
  });
  fc.assert(
    fc.property(
      options,
      fc.integer({ min: 1, max: 99 }),
      fc.integer({ min: 0, max: 40 * dayMs }),
      (given, seed, after) => {
        const fromMs = Date.UTC(2029, 11, 10) + after;
        const untilMs = fromMs + 12 * dayMs;
        const definition = defineTask("t", given as Parameters<typeof defineTask>[1]);
        const schedule = plannedSchedule(definition, calendar);
        const task = { definition, schedule, seed };
        const first = schedule.next(fromMs);
        if (first === null) return;
        const planned = planTask(definition, schedule, seed, { nextSlotMs: first, nowMs: fromMs, untilMs }).slots;
        for (const { slotMs, dueMs, skipped } of planned)
          expect(judgedSlot(task, slotMs)).toMatchObject(skipped === undefined ? { dueMs } : { skipped });
        const run = planned.filter(({ skipped }) => skipped === undefined).map(({ slotMs }) => slotMs);
        expect(comingSlots(task, fromMs, run.length)).toEqual(run);
      },
    ),
    { numRuns: rounds(60, 200) },
  );
});

it("the list ends with its schedule, after one slot of a fixed delay, and if every slot is skipped", () => {
  const slots = (options: Parameters<typeof defineTask>[1], count = 3) => {
    const definition = defineTask("t", options);
    return comingSlots({ definition, schedule: plannedSchedule(definition, undefined), seed: null }, 0, count);
  };
  expect(slots({ schedule: at("2030-01-01T00:00:00Z") })).toEqual([Date.UTC(2030, 0, 1)]);
  expect(slots({ schedule: manual })).toEqual([]);
  expect(slots({ schedule: every("1h") }, 0)).toEqual([]);
  expect(slots({ schedule: every("1h", { mode: "delay" }) })).toHaveLength(1);
  const never = [
    { from: "00:00", to: "12:00" },
    { from: "12:00", to: "00:00" },
  ];
  expect(slots({ schedule: every("1h"), blackout: never })).toEqual([]);
});

describe("consecutive skipped slots are passed over at once", () => {
  const paydays: Calendar = {
    name: "pay",
    version: 1,
    zone: "UTC",
    weekend: [],
    holidays: ["2030-01-28", "2031-02-28"],
  };
  /** Returns the next slot, and fails if the schedule was called too often. */
  const next = (options: Parameters<typeof defineTask>[1], from: string, days: Calendar = calendar) => {
    const definition = defineTask("t", options);
    const planned = plannedSchedule(definition, definition.calendar && days);
    let asked = 0;
    const schedule = {
      words: () => planned.words(),
      previous: (ms: number) => planned.previous(ms),
      next: (ms: number) => {
        asked++;
        return planned.next(ms);
      },
      judge: (slotMs: number, dueMs: number) => planned.judge?.(slotMs, dueMs),
    };
    const [slot] = comingSlots({ definition, schedule, seed: 1 }, Date.parse(from), 1);
    expect(asked).toBeLessThan(5);
    return slot === undefined ? null : new Date(slot).toISOString().replace(".000Z", "Z");
  };

  it("in a blackout, however many there are", () => {
    const blackout = [{ from: "22:00", to: "06:00", zone: "Europe/Berlin" }];
    expect(next({ schedule: every("1s"), blackout }, "2029-06-01T21:00:00Z")).toBe("2029-06-02T04:00:00Z");
    const moments = [{ from: "2029-06-01T00:00:00Z", to: "2029-09-01T00:00:00Z" }];
    expect(next({ schedule: every("1s"), blackout: moments }, "2029-06-01T21:00:00Z")).toBe("2029-09-01T00:00:00Z");
    const delayed = [
      // biome-ignore lint/suspicious/noThenProperty: never awaited.
      { from: "22:00", to: "06:00", then: "delay" as const },
      { from: "06:00", to: "07:00" },
    ];
    expect(next({ schedule: every("1s"), blackout: delayed }, "2029-06-01T22:00:00Z")).toBe("2029-06-02T07:00:00Z");
  });

  it("on days that a calendar skips", () => {
    const rule = (on: "working-days" | "holidays") => ({ schedule: every("10s"), calendar: { name: "de", on } });
    expect(next(rule("working-days"), "2029-06-01T22:30:00Z")).toBe("2029-06-03T22:00:00Z");
    expect(next(rule("holidays"), "2030-01-28T23:59:55Z", paydays)).toBe("2031-02-28T00:00:00Z");
    expect(next(rule("holidays"), "2031-02-28T23:59:55Z", paydays)).toBeNull();
  });

  it("where no day to move to is near enough", () => {
    const rule = (otherwise: "next" | "previous") => ({
      schedule: cron("* * * * *"),
      calendar: { name: "pay", on: "holidays" as const, otherwise },
    });
    expect(next(rule("next"), "2029-01-01T00:00:00Z", paydays)).toBe("2030-01-28T00:00:00Z");
    expect(next(rule("next"), "2020-01-01T00:00:00Z", paydays)).toBe("2030-01-28T00:00:00Z");
    expect(next(rule("previous"), "2020-01-01T00:00:00Z", paydays)).toBe("2030-01-28T00:00:00Z");
    for (const otherwise of ["next", "previous"] as const)
      expect(next(rule(otherwise), "2040-01-01T00:00:00Z", paydays)).toBeNull();
  });
});

it("shows when the next slot runs, delayed by jitter or to a blackout's end", () => {
  const due = (options: Parameters<typeof defineTask>[1], now: string) => {
    const definition = defineTask("t", options);
    const record = { taskId: 7, name: "t", definition, paused: null, nextSlotMs: null } as unknown as TaskRecord;
    const slotMs = nextOf(record, Date.parse(now)) as number;
    const [planned] = planTask(definition, scheduleOf(record), 7, {
      nextSlotMs: slotMs,
      nowMs: Date.parse(now),
      untilMs: slotMs,
    }).slots;
    expect(nextDue(record, Date.parse(now))).toBe(planned?.dueMs);
    return [slotMs, planned?.dueMs as number];
  };
  // biome-ignore lint/suspicious/noThenProperty: never awaited.
  const blackout = [{ from: "22:00", to: "06:00", then: "delay" as const }];
  expect(due({ schedule: cron("0 23 * * *"), blackout }, "2030-05-01T12:00:00Z")).toEqual(
    ["2030-05-01T23:00:00Z", "2030-05-02T06:00:00Z"].map(Date.parse),
  );
  const [slotMs, dueMs] = due({ schedule: cron("0 9 * * *", { jitter: "1h" }) }, "2030-05-01T12:00:00Z");
  expect(dueMs).toBeGreaterThan(slotMs as number);
});
