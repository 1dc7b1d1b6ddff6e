import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rounds } from "../../test/support/long.ts";
import {
  type Calendar,
  type CalendarRule,
  calendarContent,
  calendarSchedule,
  dayMs,
  dayOfText,
  instantAt,
  runDays,
  weekdayOf,
} from "./calendar.ts";
import { compileSchedule, cron, every, type Schedule } from "./schedule.ts";
import { zoneOf } from "./zone.ts";

const calendar = (zone: string, weekend: number[], holidays: string[]): Calendar => ({
  name: "test",
  version: 1,
  ...calendarContent({ zone, weekend, holidays }),
});
const utc = (text: string) => Date.parse(`${text}Z`);

const clocks = new Map<string, Intl.DateTimeFormat>();

/** Returns the local day and time of an instant, computed by the runtime instead of by the code under test. */
function wall(zone: string, ms: number): { day: number; time: number } {
  const clock =
    clocks.get(zone) ??
    new Intl.DateTimeFormat("en-CA", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
  clocks.set(zone, clock);
  const parts = clock.formatToParts(ms);
  const of = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  return {
    day: Date.UTC(of("year"), of("month") - 1, of("day")) / dayMs,
    time: ((of("hour") * 60 + of("minute")) * 60 + of("second")) * 1_000,
  };
}

/**
 * Computes the expected slots naively: walks the slots of a wide range, and moves each slot on an excluded day, one day at a time, to the
 * nearest allowed day after or before it. Slots that end up at the same instant count once.
 */
function naive(
  base: Schedule,
  rule: CalendarRule,
  { zone, weekend, holidays }: Calendar,
  from: number,
  to: number,
  margin = 60 * dayMs,
): number[] {
  const free = new Set(holidays.map((day) => Date.parse(`${day}T00:00:00Z`) / dayMs));
  const works = (day: number) => !free.has(day) && !weekend.includes((((day + 4) % 7) + 7) % 7);
  const runs = (day: number) => works(day) === (rule.on === "working-days");
  const moved = new Set<number>();
  for (let slot = base.next(from - margin); slot !== null && slot < to + margin; slot = base.next(slot)) {
    const { day, time } = wall(zone, slot);
    let target = day;
    while (!runs(target)) target += rule.otherwise === "next" ? 1 : -1;
    if (target === day) moved.add(slot);
    else {
      // Searches for the first instant in the vicinity that has this local time; for a skipped local time, the instant is later by the
      // length of the gap.
      const guess = target * dayMs + time;
      let found: number | undefined;
      for (let at = guess - 15 * 3_600_000; at <= guess + 15 * 3_600_000 && found === undefined; at += 1_800_000) {
        const seen = wall(zone, at);
        if (seen.day === target && seen.time === time) found = at;
      }
      moved.add(found ?? instantAt(zoneOf(zone), guess));
    }
  }
  return [...moved].filter((at) => at > from && at < to).sort((a, b) => a - b);
}

function walk(schedule: Schedule, from: number, to: number): number[] {
  const slots: number[] = [];
  for (let slot = schedule.next(from); slot !== null && slot < to; slot = schedule.next(slot)) slots.push(slot);
  return slots;
}

function walkBack(schedule: Schedule, from: number, to: number): number[] {
  const slots: number[] = [];
  for (let slot = schedule.previous(to); slot !== null && slot > from; slot = schedule.previous(slot))
    slots.unshift(slot);
  return slots;
}

describe("a schedule under a calendar", () => {
  const zones = ["Europe/Berlin", "America/New_York", "UTC", "Australia/Lord_Howe", "Africa/Cairo"];
  const specs = (zone: string) => [
    cron("30 2 * * *", { zone }),
    cron("0 9,17 * * *", { zone }),
    cron("30 0 * * SAT", { zone }),
    cron("0 12 1,15 * *", { zone: "Asia/Shanghai" }),
    every("6h", { anchor: 1_800_000 }),
    cron("0 1-3 * * SUN", { zone, gap: "skip", overlap: "both" }),
  ];

  it("moves slots as a day-by-day search does, in both directions, also around changes of clocks", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.nat(5),
        fc.constantFrom<CalendarRule["otherwise"]>("next", "previous"),
        fc.constantFrom<CalendarRule["on"]>("working-days", "holidays"),
        fc.constantFrom<number[]>([0, 6], [5, 6], [0]),
        fc.array(fc.nat(40), { maxLength: 12 }),
        fc.constantFrom(utc("2026-03-01T00:00:00"), utc("2026-10-15T00:00:00"), utc("2026-06-01T00:00:00")),
        fc.nat(3 * dayMs),
        (zone, which, otherwise, on, weekend, free, start, offset) => {
          const holidays = free.map((day) => new Date(start + day * dayMs).toISOString().slice(0, 10));
          const days = calendar(zone, weekend, holidays);
          const rule: CalendarRule = { name: "test", on, otherwise };
          const base = compileSchedule(specs(zone)[which]!);
          const schedule = calendarSchedule(base, rule, days);
          const from = start + offset;
          const to = from + 25 * dayMs;
          const expected = naive(base, rule, days, from, to);
          expect(walk(schedule, from, to)).toEqual(expected);
          expect(walkBack(schedule, from, to)).toEqual(expected);
        },
      ),
      { numRuns: rounds(10, 40) },
    );
  }, 60_000);

  it("misses no slot if moved times are not ascending, and gives the same slots backwards", () => {
    const changes: [string, string][] = [
      ["America/New_York", "2026-11-01"],
      ["America/New_York", "2026-03-08"],
      ["Europe/Berlin", "2026-10-25"],
      ["Europe/Berlin", "2026-03-29"],
      ["Australia/Lord_Howe", "2026-04-05"],
      ["Australia/Lord_Howe", "2026-10-04"],
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...changes),
        fc.constantFrom("next" as const, "previous" as const),
        fc.constantFrom("working-days" as const, "holidays" as const),
        fc.constantFrom(every("7m"), every("13m"), cron("*/11 * * * *", { zone: "Asia/Shanghai" })),
        fc.subarray([-2, -1, 0, 1, 2]),
        fc.nat(dayMs),
        ([zone, change], otherwise, on, schedule, free, offset) => {
          const noon = Date.parse(`${change}T12:00:00Z`);
          const holidays = free.map((away) => new Date(noon + away * dayMs).toISOString().slice(0, 10));
          const days = calendar(zone, [0, 6], holidays);
          const rule: CalendarRule = { name: "test", on, otherwise };
          const base = compileSchedule(schedule);
          const moving = calendarSchedule(base, rule, days);
          const [from, to] = [noon - 3 * dayMs + offset, noon + 3 * dayMs];
          const expected = naive(base, rule, days, from, to, 8 * dayMs);
          expect(walk(moving, from, to)).toEqual(expected);
          expect(walkBack(moving, from, to)).toEqual(expected);
        },
      ),
      { numRuns: rounds(5, 40) },
    );
  }, 60_000);

  it("finds the same nearest day as a day-by-day search", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<CalendarRule["on"]>("working-days", "holidays"),
        fc.constantFrom<number[]>([], [0, 6], [1, 2, 3, 4, 5, 6], [3], [0, 1, 2, 3, 4, 5, 6]),
        fc.array(fc.oneof(fc.nat(40), fc.nat(400)), { maxLength: 60 }),
        fc.array(fc.integer({ min: -20, max: 420 }), { minLength: 1, maxLength: 8 }),
        fc.constantFrom(1 as const, -1 as const),
        (on, weekend, free, asked, way) => {
          const holidays = free.map((day) => new Date(day * dayMs).toISOString().slice(0, 10));
          const days = runDays({ ...calendar("UTC", [], holidays), weekend }, on);
          for (const day of asked) {
            let expected = day;
            while (!days.allows(expected) && Math.abs(expected - day) < 1_000) expected += way;
            expect(days.nearest(day, way)).toBe(days.allows(expected) ? expected : way * Number.POSITIVE_INFINITY);
          }
        },
      ),
    );
  });

  it("skips on other days, and names the day and the reason", () => {
    const days = calendar("Europe/Berlin", [0, 6], ["2026-12-25"]);
    const schedule = calendarSchedule(
      compileSchedule(cron("0 9 * * *", { zone: "Europe/Berlin" })),
      { name: "test", on: "working-days", otherwise: "skip" },
      days,
    );
    const told = walk(schedule, utc("2026-12-24T00:00:00"), utc("2026-12-29T00:00:00")).map(
      (slot) => schedule.judge?.(slot, slot)?.skipped ?? "runs",
    );
    expect(told).toEqual([
      "runs",
      "calendar test: 2026-12-25 is a holiday",
      "calendar test: 2026-12-26 is weekend (Saturday)",
      "calendar test: 2026-12-27 is weekend (Sunday)",
      "runs",
    ]);
  });

  it("merges slots that are moved to one instant, and names their origins", () => {
    const days = calendar("UTC", [0, 6], ["2026-12-25"]);
    const daily = compileSchedule(cron("0 9,17 * * *"));
    const schedule = calendarSchedule(daily, { name: "test", on: "working-days", otherwise: "next" }, days);
    const slots = walk(schedule, utc("2026-12-24T18:00:00"), utc("2026-12-29T00:00:00"));
    expect(slots).toEqual([utc("2026-12-28T09:00:00"), utc("2026-12-28T17:00:00")]);
    expect(schedule.judge?.(slots[0]!, slots[0]!)).toEqual({
      dueMs: slots[0],
      note: "calendar test: moved from 2026-12-27, 2026-12-26, 2026-12-25",
    });
  });

  it("stops searching if there is no such day", () => {
    const never = calendar("UTC", [], []);
    const schedule = calendarSchedule(
      compileSchedule(cron("0 9 * * MON")),
      { name: "test", on: "holidays", otherwise: "next" },
      never,
    );
    const slot = schedule.next(utc("2026-12-24T00:00:00"))!;
    expect(schedule.judge?.(slot, slot)?.skipped).toMatch(/no other day is within 400 days$/);
    expect(schedule.next(slot)).toBe(slot + 7 * dayMs);
    expect(schedule.previous(slot)).toBe(slot - 7 * dayMs);
  });

  it("ends where its schedule ends", () => {
    const days = calendar("UTC", [0, 6], []);
    const once = { type: "at", atMs: utc("2026-12-26T10:00:00") } as const;
    const moved = (otherwise: "next" | "previous") =>
      calendarSchedule(compileSchedule(once), { name: "test", on: "working-days", otherwise }, days);
    expect(moved("next").next(0)).toBe(utc("2026-12-28T10:00:00"));
    expect(moved("next").next(utc("2026-12-27T00:00:00"))).toBe(utc("2026-12-28T10:00:00"));
    expect(moved("next").next(utc("2026-12-28T10:00:00"))).toBeNull();
    expect(moved("previous").next(utc("2026-12-25T00:00:00"))).toBe(utc("2026-12-25T10:00:00"));
    expect(moved("previous").previous(utc("2026-12-25T10:00:00"))).toBeNull();
  });
});

describe("the content of a calendar", () => {
  it("is sorted and has no duplicates", () => {
    expect(
      calendarContent({
        zone: "europe/berlin",
        weekend: [6, 0, 6],
        holidays: ["2026-12-26", "2026-01-01", "2026-12-26"],
      }),
    ).toEqual({
      zone: "Europe/Berlin",
      weekend: [0, 6],
      holidays: ["2026-01-01", "2026-12-26"],
    });
    expect(["sat", "Sunday", " MON "].map(weekdayOf)).toEqual([6, 0, 1]);
  });

  it.each([
    ["a date that does not exist", () => dayOfText("2026-02-30")],
    ["a date in another form", () => dayOfText("25.12.2026")],
    ["no weekday", () => weekdayOf("holiday")],
    ["a week of weekend", () => calendarContent({ zone: "UTC", weekend: [0, 1, 2, 3, 4, 5, 6], holidays: [] })],
    ["no day of the week", () => calendarContent({ zone: "UTC", weekend: [7], holidays: [] })],
    [
      "too many holidays",
      () =>
        calendarContent({
          zone: "UTC",
          weekend: [],
          holidays: Array.from({ length: 5_001 }, (_, day) => new Date(day * dayMs).toISOString().slice(0, 10)),
        }),
    ],
  ])("refuses %s", (_, make) => {
    expect(make).toThrowError(expect.objectContaining({ code: "CALENDAR_INVALID" }));
  });
});
