import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { planTask } from "../slots/plan.ts";
import { edited, keepEdits, reverted } from "../task/edits.ts";
import { defineTask, definitionText, type TaskOptions } from "../task/task.ts";
import type { Calendar } from "./calendar.ts";
import { cron, every } from "./schedule.ts";
import { plannedSchedule, slotsPassed, slotsPutBack } from "./slot-rules.ts";

// biome-ignore lint/suspicious/noThenProperty: never awaited.
const delay = { then: "delay" } as const;
// biome-ignore lint/suspicious/noThenProperty: never awaited.
const skip = { then: "skip" } as const;
// biome-ignore lint/suspicious/noThenProperty: never awaited.
const maybe = { then: "maybe" };
const utc = (text: string) => Date.parse(`${text}Z`);
const hourMs = 3_600_000;
const working: Calendar = { name: "de", version: 1, zone: "UTC", weekend: [0, 6], holidays: ["2026-12-25"] };
const plan = (options: TaskOptions, next: string, now: string, until = now) => {
  const definition = defineTask("t", options);
  const schedule = plannedSchedule(definition, definition.calendar && working);
  return planTask(definition, schedule, 1, { nextSlotMs: utc(next), nowMs: utc(now), untilMs: utc(until) });
};

describe("a task's calendar and blackouts", () => {
  it("are in its definition only if the task has them", () => {
    expect(definitionText(defineTask("t"))).not.toMatch(/calendar|blackout/);
    const full = defineTask("t", {
      schedule: cron("0 9 * * *"),
      calendar: { name: "de" },
      blackout: [{ from: "22:00", to: "06:00", zone: "europe/berlin", days: ["sat", "fri"], ...delay }],
    });
    expect(full.calendar).toEqual({ name: "de", on: "working-days", otherwise: "skip" });
    expect(full.blackout).toEqual([{ from: "22:00", to: "06:00", zone: "Europe/Berlin", days: [5, 6], ...delay }]);
  });

  it.each<[string, unknown]>([
    ["calendar without a name", { calendar: {} }],
    ["calendar with a strange name", { calendar: { name: "../x" } }],
    ["calendar on days that there are not", { calendar: { name: "de", on: "sundays" } }],
    ["calendar with a strange option", { calendar: { name: "de", days: 1 } }],
    ["calendar of a fixed delay", { schedule: every("1m", { mode: "delay" }), calendar: { name: "de" } }],
    ["blackout that is no list", { blackout: { from: "22:00", to: "06:00" } }],
    ["blackout of no length", { blackout: [{ from: "22:00", to: "22:00" }] }],
    ["blackout of half a kind", { blackout: [{ from: "22:00", to: "2026-12-24T12:00:00Z" }] }],
    ["blackout backwards", { blackout: [{ from: "2026-12-25T12:00:00Z", to: "2026-12-24T12:00:00Z" }] }],
    [
      "blackout of moments with days",
      { blackout: [{ from: "2026-12-24T12:00:00Z", to: "2026-12-25T12:00:00Z", days: ["sat"] }] },
    ],
    ["blackout on no day", { blackout: [{ from: "22:00", to: "06:00", days: [] }] }],
    ["blackout on a day that there is not", { blackout: [{ from: "22:00", to: "06:00", days: ["xyz"] }] }],
    ["blackout that ends otherwise", { blackout: [{ from: "22:00", to: "06:00", ...maybe }] }],
    [
      "fixed delay that skips",
      { schedule: every("1m", { mode: "delay" }), blackout: [{ from: "22:00", to: "06:00" }] },
    ],
    ["too many windows", { blackout: Array.from({ length: 101 }, () => ({ from: "22:00", to: "06:00" })) }],
  ])("refuse a %s", (_, options) => {
    expect(() => defineTask("t", options as TaskOptions)).toThrowError(
      expect.objectContaining({ code: "TASK_INVALID" }),
    );
  });

  it("can be edited if the code has none, and reverted to none", () => {
    const code = defineTask("t", { schedule: cron("0 9 * * *") });
    const stored = (definition: typeof code) => JSON.parse(definitionText(definition)) as typeof code;
    const changed = stored(edited(code, { calendar: { name: "de" } }));
    expect(changed).toMatchObject({ calendar: { name: "de" }, asDefined: { calendar: null } });
    expect(stored(keepEdits(code, changed))).toEqual(changed);
    expect(definitionText(reverted(changed, ["calendar"]))).toBe(definitionText(code));
    const defined = defineTask("t", { schedule: cron("0 9 * * *"), calendar: { name: "de" } });
    const without = stored(edited(defined, { calendar: null }));
    expect(without).not.toHaveProperty("calendar");
    expect(definitionText(reverted(stored(keepEdits(defined, without)), ["calendar"]))).toBe(definitionText(defined));
  });
});

describe("planning with calendar and blackouts", () => {
  it("records every slot as run or skipped", () => {
    const options: TaskOptions = {
      schedule: cron("0 9,23 * * *"),
      calendar: { name: "de" },
      blackout: [{ from: "22:00", to: "06:00", ...delay }],
    };
    const { slots, nextSlotMs } = plan(options, "2026-12-24T09:00:00", "2026-12-24T08:00:00", "2026-12-26T00:00:00");
    expect(slots).toEqual([
      { slotMs: utc("2026-12-24T09:00:00"), dueMs: utc("2026-12-24T09:00:00") },
      {
        slotMs: utc("2026-12-24T23:00:00"),
        dueMs: utc("2026-12-25T06:00:00"),
        note: "blackout 22:00 to 06:00 UTC: delayed",
      },
      ...["09", "23"].map((hour) => ({
        slotMs: utc(`2026-12-25T${hour}:00:00`),
        dueMs: utc(`2026-12-25T${hour}:00:00`),
        skipped: "calendar de: 2026-12-25 is a holiday",
      })),
    ]);
    expect(nextSlotMs).toBe(utc("2026-12-26T09:00:00"));
  });

  it("applies the misfire policy only to slots that would have run", () => {
    const options: TaskOptions = { schedule: cron("0 9 * * *"), calendar: { name: "de" } };
    // The process is stopped from Wednesday to Sunday. Thursday's slot is the last slot that would have run.
    const { slots, missed, nextSlotMs } = plan(options, "2026-12-23T09:00:00", "2026-12-27T12:00:00");
    expect(slots.filter(({ skipped }) => skipped === undefined).map(({ slotMs }) => slotMs)).toEqual([
      utc("2026-12-24T09:00:00"),
    ]);
    expect(slots.filter(({ skipped }) => skipped !== undefined)).toHaveLength(3);
    expect(missed).toEqual([
      { fromMs: utc("2026-12-23T09:00:00"), toMs: utc("2026-12-23T09:00:00"), count: 1, reason: "misfire: fire_once" },
    ]);
    expect(nextSlotMs).toBe(utc("2026-12-28T09:00:00"));
  });

  it("reports many skipped slots as one range, and bounds the slots that it looks at", () => {
    const { slots, missed } = plan(
      { schedule: every("1m"), calendar: { name: "de" } },
      "2026-12-25T00:00:00",
      "2026-12-26T12:00:00",
    );
    expect(slots).toEqual([]);
    expect(missed).toEqual([
      expect.objectContaining({ outcome: "skipped", fromMs: utc("2026-12-25T00:00:00"), count: 36 * 60 + 1 }),
    ]);
    const asked = vi.spyOn(Intl, "DateTimeFormat");
    const long = plan(
      { schedule: every("1s"), calendar: { name: "de" } },
      "2026-12-24T00:00:00",
      "2026-12-26T12:00:00",
    );
    expect(long.missed[0]).toMatchObject({ fromMs: utc("2026-12-24T00:00:00"), count: null });
    expect(asked.mock.calls.length, "the zone is searched once, not once a slot").toBeLessThan(5);
    asked.mockRestore();
  });

  it("judges catch-up runs by the time at which they start", () => {
    const nightly = [{ from: "22:00", to: "06:00" }];
    const late = (then: typeof skip | typeof delay) =>
      plan(
        { schedule: cron("0 12 * * *"), blackout: nightly.map((window) => ({ ...window, ...then })) },
        "2026-12-24T12:00:00",
        "2026-12-24T23:00:00",
      ).slots;
    expect(late(skip)).toEqual([expect.objectContaining({ skipped: expect.stringContaining("blackout") })]);
    expect(late(delay)).toEqual([expect.objectContaining({ dueMs: utc("2026-12-25T06:00:00") })]);
  });

  it("records every nominal time once as run, skipped or missed, whatever interruptions occur", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("skip" as const, "next" as const, "previous" as const),
        fc.constantFrom("fire_once" as const, "skip" as const, "all" as const),
        fc.constantFrom(every("30m"), cron("0 9,23 * * *"), every("7h")),
        fc.constantFrom(delay, skip),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 20_000 }), fc.integer({ min: 1, max: 4 * 86_400_000 })), {
          minLength: 1,
          maxLength: 12,
        }),
        fc.constantFrom({}, { within: "3h" }),
        (otherwise, policy, schedule, then, halts, within) => {
          const definition = defineTask("t", {
            schedule,
            misfire: { policy, ...within, ...(policy === "all" ? { cap: 3, perSecond: 2 } : {}) },
            calendar: { name: "de", otherwise },
            blackout: [{ from: "22:00", to: "06:00", ...then }],
          });
          const planned = plannedSchedule(definition, working);
          let now = utc("2026-12-22T00:00:00");
          const first = planned.next(now) as number;
          let cursor: number | null = first;
          const seen: number[] = [];
          let ranged = 0;
          for (const halt of halts) {
            now += halt;
            const step = planTask(definition, planned, 1, {
              nextSlotMs: cursor as number,
              nowMs: now,
              untilMs: now + 15_000,
            });
            for (const { slotMs, dueMs, skipped, nominalMs } of step.slots) {
              seen.push(...(nominalMs ?? [slotMs]));
              expect(dueMs).toBeGreaterThanOrEqual(slotMs);
              if (skipped === undefined) expect(planned.judge?.(slotMs, dueMs)?.skipped).toBeUndefined();
            }
            for (const { count } of step.missed) ranged += count as number;
            cursor = step.nextSlotMs;
          }
          let expected = 0;
          for (let slot: number | null = first; slot !== null && slot < (cursor as number); slot = planned.next(slot))
            expected += planned.nominalTimes?.(slot).length ?? 1;
          expect(new Set(seen).size).toBe(seen.length);
          expect(seen.length + ranged).toBe(expected);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("delays a fixed-delay slot to the end of the window", () => {
    const blackout = [{ from: "22:00", to: "06:00", ...delay }];
    const step = plan(
      { schedule: every("1h", { mode: "delay" }), blackout },
      "2026-12-24T22:30:00",
      "2026-12-24T22:30:00",
    );
    expect(step.slots).toEqual([expect.objectContaining({ dueMs: utc("2026-12-25T06:00:00") })]);
    expect(step.nextSlotMs).toBeNull();
  });

  it("finds delayed slots that a change moves back into the past", () => {
    const definition = defineTask("t", { schedule: cron("0 9,15 * * *"), calendar: { name: "de", otherwise: "next" } });
    const was = { definition, calendar: working };
    const now = utc("2026-12-25T12:00:00");
    const mended = { definition, calendar: { ...working, version: 2, holidays: [] } };
    const off = utc("2026-12-25T09:00:00");
    expect(slotsPutBack(was, mended, now)).toEqual([off]);
    expect(slotsPutBack(was, was, now)).toEqual([]);
    // The new schedule does not have this nominal time, so it has no slot to which it could be moved back.
    const other = defineTask("t", { schedule: cron("0 15 * * *"), calendar: { name: "de", otherwise: "next" } });
    expect(slotsPutBack(was, { definition: other, calendar: working }, now)).toEqual([off]);
    const skipping = defineTask("t", { schedule: cron("0 9,15 * * *"), calendar: { name: "de" } });
    expect(slotsPutBack({ definition: skipping, calendar: working }, mended, now)).toEqual([]);
  });

  it("finds slots that a change moves into the past", () => {
    const definition = defineTask("t", {
      schedule: cron("0 9 * * *"),
      calendar: { name: "de", otherwise: "previous" },
    });
    // On Thursday at noon, Friday becomes a holiday. The slots of Friday and the weekend would have been this morning.
    const found = slotsPassed({ definition, calendar: working }, utc("2026-12-24T12:00:00"));
    expect(found).toEqual(["2026-12-25", "2026-12-26", "2026-12-27"].map((day) => utc(`${day}T09:00:00`)));
    expect(slotsPassed({ definition, calendar: working }, utc("2026-12-24T08:00:00"))).toEqual([]);
    expect(slotsPassed({ definition, calendar: working }, utc("2026-12-22T12:00:00") + hourMs)).toEqual([]);
  });
});
