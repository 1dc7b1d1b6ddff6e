import fc from "fast-check";
import { expect, it } from "vitest";
import type { Calendar } from "./calendar.ts";
import { comingSlots, judgedSlot } from "./coming-slots.ts";
import { planTask } from "./planning.ts";
import { at, cron, every, manual } from "./schedule.ts";
import { plannedSchedule } from "./slot-rules.ts";
import { defineTask } from "./task.ts";

const dayMs = 86_400_000;
const calendar: Calendar = { name: "de", version: 1, zone: "Europe/Berlin", weekend: [0, 6], holidays: ["2030-01-01"] };

it("previews say of each slot what the planner does with it, jitter in or near blackouts included", () => {
  const options = fc.record({
    schedule: fc.constantFrom(cron("0 */5 * * *"), cron("30 9 * * *", { jitter: "2h" }), every("7h", { jitter: "1h" })),
    calendar: fc.option(fc.record({ name: fc.constant("de"), otherwise: fc.constantFrom("skip", "next", "previous") })),
    blackout: fc.array(
      fc.record({
        from: fc.constantFrom("08:00", "10:00", "22:00"),
        to: fc.constantFrom("11:00", "06:00"),
        // biome-ignore lint/suspicious/noThenProperty: never awaited.
        then: fc.constantFrom("skip", "delay"),
      }),
      { maxLength: 2 },
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
        const planned = planTask(definition, schedule, seed, first, fromMs, untilMs).slots;
        for (const { slotMs, dueMs, skipped } of planned)
          expect(judgedSlot(task, slotMs)).toMatchObject(skipped === undefined ? { dueMs } : { skipped });
        const run = planned.filter(({ skipped }) => skipped === undefined).map(({ slotMs }) => slotMs);
        expect(comingSlots(task, fromMs, run.length)).toEqual(run);
      },
    ),
    { numRuns: 200 },
  );
});

it("ends: with a schedule that does, with a fixed delay, and where everything is skipped", () => {
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
