import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hardZones, sample, seed as zonesSeed } from "../../test/support/long.ts";
import { seeded } from "../base/random.ts";
import { type BlackoutWindow, blackedOut, occurrenceAt } from "./blackout.ts";
import { dayMs } from "./calendar.ts";
import { zoneOf } from "./zone.ts";

// biome-ignore lint/suspicious/noThenProperty: never awaited.
const delay = { then: "delay" } as const;
// biome-ignore lint/suspicious/noThenProperty: never awaited.
const skip = { then: "skip" } as const;
const utc = (text: string) => Date.parse(`${text}Z`);
const nightly = (given: Partial<BlackoutWindow & { from: string }> = {}) =>
  ({ from: "22:00", to: "06:00", zone: "Europe/Berlin", days: null, ...skip, ...given }) as BlackoutWindow;
const minute = 60_000;
const endOfWindow = (window: BlackoutWindow, ms: number) => occurrenceAt(window, ms)?.endMs ?? null;

/** Returns the minutes since midnight and the weekday on a clock in the zone, computed by the runtime instead of the code under test. */
function wall(zone: string, ms: number): { minutes: number; weekday: number } {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    weekday: "short",
    hour: "numeric",
    minute: "numeric",
  }).formatToParts(ms);
  const of = (type: string) => parts.find((part) => part.type === type)?.value ?? "";
  return {
    minutes: Number(of("hour")) * 60 + Number(of("minute")),
    weekday: ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].indexOf(of("weekday")),
  };
}

const clockText = (minutes: number) =>
  `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;

describe("a blackout window", () => {
  it.each([
    ["America/New_York", "2026-03-08T06:00", ["02:30", "06:00"], ["2026-03-08T07:00", "2026-03-08T10:00"]],
    ["America/New_York", "2026-03-08T06:00", ["01:00", "02:30"], ["2026-03-08T06:00", "2026-03-08T07:00"]],
    ["America/Santiago", "2026-09-06T03:00", ["00:30", "06:00"], ["2026-09-06T04:00", "2026-09-06T09:00"]],
    ["America/Santiago", "2026-09-06T03:00", ["22:00", "00:30"], ["2026-09-06T02:00", "2026-09-06T04:00"]],
    ["Antarctica/Troll", "2026-03-29T00:00", ["01:20", "04:00"], ["2026-03-29T01:00", "2026-03-29T02:00"]],
  ])(
    "in %s, if a bound is skipped by the clocks after %s, %j, it begins and ends where the clocks continue",
    (zone, after, [from = "", to = ""], [start = "", end = ""]) => {
      const window = nightly({ zone, from, to });
      const held: number[] = [];
      for (let ms = utc(after) - 6 * 60 * minute; ms < utc(after) + 12 * 60 * minute; ms += minute)
        if (occurrenceAt(window, ms)) held.push(ms);
      expect([held[0], held.length]).toEqual([utc(start), (utc(end) - utc(start)) / minute]);
      expect(occurrenceAt(window, utc(start))).toEqual({ startMs: utc(start), endMs: utc(end) });
    },
  );

  it.each(sample(Intl.supportedValuesOf("timeZone"), 12, seeded(zonesSeed), hardZones))(
    "in %s follows the local clock, whatever local times are skipped",
    (name) => {
      const chance = seeded(zonesSeed);
      const wrong: unknown[] = [];
      const zone = zoneOf(name);
      const gaps = [...zone.transitions(0, utc("2040-01-01T00:00"))].filter(
        ({ entered }) => entered > 0 && entered < dayMs,
      );
      for (const { from: at, entered, offset } of gaps) {
        // Skips a clock change that has another one within three days: if the other one sets clocks back, an hour is repeated, and a window
        // in a repeated hour follows a different rule (see `occurrenceAt`).
        if ([...zone.transitions(at - 3 * dayMs, at + 3 * dayMs)].length > 1) continue;
        const end = (((at + offset) % dayMs) / minute) | 0;
        const inGap = end - Math.ceil((chance.next() * entered) / minute);
        const other = Math.floor(chance.next() * 1_440);
        for (const [first, last] of [
          [inGap, other],
          [other, inGap],
        ]) {
          const [opens, closes] = [((first as number) + 1_440) % 1_440, ((last as number) + 1_440) % 1_440];
          if (opens === closes) continue;
          const window = nightly({ zone: name, from: clockText(opens), to: clockText(closes) });
          for (let ms = at - 26 * 60 * minute; ms < at + 26 * 60 * minute; ms += 10 * minute) {
            const shown = Math.floor(((((ms + zone.at(ms).offset) % dayMs) + dayMs) % dayMs) / minute);
            const inside = opens < closes ? shown >= opens && shown < closes : shown >= opens || shown < closes;
            if ((occurrenceAt(window, ms) !== null) !== inside)
              wrong.push([new Date(ms).toISOString(), window, inside]);
          }
        }
      }
      expect(wrong).toEqual([]);
    },
  );

  it("follows the local clock on days without a change of clocks", () => {
    const clock = fc.integer({ min: 0, max: 1_439 });
    fc.assert(
      fc.property(
        clock,
        clock,
        fc.option(fc.uniqueArray(fc.nat(6), { minLength: 1 })),
        fc.constantFrom("Europe/Berlin", "Asia/Kolkata", "UTC"),
        fc.integer({ min: utc("2026-05-01T00:00:00"), max: utc("2026-09-01T00:00:00") }),
        (from, to, days, zone, ms) => {
          fc.pre(from !== to);
          const window = nightly({ from: clockText(from), to: clockText(to), zone, days } as never);
          const { minutes, weekday } = wall(zone, ms);
          const begins = (day: number) => days === null || days.includes((day + 7) % 7);
          const inside =
            from < to
              ? minutes >= from && minutes < to && begins(weekday)
              : (minutes >= from && begins(weekday)) || (minutes < to && begins(weekday - 1));
          const end = endOfWindow(window, ms);
          expect(end !== null).toBe(inside);
          if (end !== null) {
            expect(end).toBeGreaterThan(ms);
            expect(wall(zone, end).minutes).toBe(to);
            expect(end - ms).toBeLessThanOrEqual(24 * 60 * minute);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it("follows the local clock across a change of clocks", () => {
    // On 29 March 2026 in Berlin, clocks go forward from 02:00 to 03:00, so the window from 22:00 to 06:00 is an hour shorter.
    expect(endOfWindow(nightly(), utc("2026-03-28T21:00:00"))).toBe(utc("2026-03-29T04:00:00"));
    expect(endOfWindow(nightly(), utc("2026-03-29T04:00:00"))).toBeNull();
    expect(endOfWindow(nightly(), utc("2026-10-24T20:00:00"))).toBe(utc("2026-10-25T05:00:00"));
  });

  it("recurs in the second pass of a repeated hour, with an end of its own each time", () => {
    const newYork = (from: string, to: string) => nightly({ from, to, zone: "America/New_York" });
    const ends = (window: BlackoutWindow, ...times: string[]) =>
      times.map((time) => {
        const end = endOfWindow(window, utc(`2026-11-01T${time}:00`));
        return end === null ? null : new Date(end).toISOString().slice(11, 16);
      });
    // On 1 November 2026 in New York, clocks go back from 02:00 to 01:00 at 06:00Z.
    const short = newYork("01:30", "01:45");
    expect(ends(short, "05:29", "05:35", "05:45", "06:29", "06:35", "06:45")).toEqual([
      null,
      "05:45",
      null,
      null,
      "06:45",
      null,
    ]);
    expect(ends(newYork("22:00", "01:30"), "05:00", "05:40", "06:10", "06:30")).toEqual(["05:30", null, "06:30", null]);
    expect(ends(newYork("01:30", "03:00"), "05:40", "06:10", "07:59")).toEqual(["08:00", "08:00", "08:00"]);
  });

  it("contains exactly the instants whose local time is in it, and ends outside, also around changes of clocks", () => {
    const clock = fc.integer({ min: 0, max: 47 });
    const text = (half: number) => `${String(half >> 1).padStart(2, "0")}:${half % 2 ? "30" : "00"}`;
    fc.assert(
      fc.property(
        clock,
        clock,
        fc.constantFrom("America/New_York", "Europe/Berlin", "Australia/Lord_Howe"),
        fc.constantFrom(utc("2026-11-01T05:00:00"), utc("2026-10-25T00:00:00"), utc("2026-04-04T14:00:00")),
        fc.integer({ min: -1_440, max: 1_440 }),
        (from, to, zone, near, away) => {
          fc.pre(from !== to);
          const ms = near + away * minute;
          const window = nightly({ from: text(from), to: text(to), zone });
          const { minutes } = wall(zone, ms);
          const inside =
            from < to ? minutes >= from * 30 && minutes < to * 30 : minutes >= from * 30 || minutes < to * 30;
          const held = occurrenceAt(window, ms);
          if (inside) expect(held).not.toBeNull();
          if (held === null) return;
          expect(held.startMs).toBeLessThanOrEqual(ms);
          expect(wall(zone, held.endMs).minutes).toBe(to * 30);
        },
      ),
      { numRuns: 400 },
    );
  });

  it("between two instants includes its start and excludes its end", () => {
    const window = { fromMs: 100, toMs: 200, ...skip } as const;
    expect([99, 100, 199, 200].map((ms) => endOfWindow(window, ms))).toEqual([null, 200, 200, null]);
  });
});

describe("a slot that is due in a blackout", () => {
  const at = utc("2026-06-01T21:30:00");
  it("is unchanged outside the window, and is skipped or delayed to its end inside", () => {
    expect(blackedOut([nightly()], utc("2026-06-01T12:00:00"))).toBeUndefined();
    expect(blackedOut([nightly()], at)).toEqual({
      dueMs: at,
      skipped: "blackout 22:00 to 06:00 Europe/Berlin",
      untilMs: utc("2026-06-02T04:00:00"),
    });
    expect(blackedOut([nightly({ ...delay })], at)).toEqual({
      dueMs: utc("2026-06-02T04:00:00"),
      note: "blackout 22:00 to 06:00 Europe/Berlin: delayed",
    });
  });

  it("passes through consecutive windows, and stops at one that skips", () => {
    const morning = nightly({ from: "06:00", to: "07:30", ...delay });
    expect(blackedOut([morning, nightly({ ...delay })], at)?.dueMs).toBe(utc("2026-06-02T05:30:00"));
    const skipping = nightly({ from: "06:00", to: "07:30" });
    expect(blackedOut([skipping, nightly({ ...delay })], at)).toMatchObject({
      skipped: expect.stringContaining("06:00"),
    });
  });

  it("is skipped if windows leave no gap", () => {
    const day = nightly({ from: "06:00", to: "22:00", ...delay });
    expect(blackedOut([day, nightly({ ...delay })], at)?.skipped).toMatch(/more than a year$/);
  });

  it("has, if skipped, the time until which every slot is skipped", () => {
    const clock = fc.constantFrom("00:00", "03:30", "06:00", "07:30", "12:00", "22:00");
    const window = fc.tuple(clock, clock, fc.constantFrom(skip, delay));
    fc.assert(
      fc.property(
        fc.array(window, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: utc("2026-10-20T00:00:00"), max: utc("2026-10-30T00:00:00") }),
        (given, ms) => {
          const windows = given
            .filter(([from, to]) => from !== to)
            .map(([from, to, then]) => nightly({ from, to, ...then } as never));
          const { skipped, untilMs = Number.NaN } = blackedOut(windows, ms) ?? {};
          fc.pre(skipped !== undefined);
          expect(untilMs).toBeGreaterThan(ms);
          for (const part of [0.2, 0.5, 0.8, 1])
            expect(blackedOut(windows, Math.ceil(ms + (untilMs - ms) * part) - 1)?.skipped).toBeDefined();
        },
      ),
      { numRuns: 150 },
    );
  });

  it("is never placed in a window that delays, and never moves earlier", () => {
    fc.assert(
      fc.property(fc.integer({ min: utc("2026-01-01T00:00:00"), max: utc("2027-01-01T00:00:00") }), (ms) => {
        const windows = [nightly({ ...delay }), nightly({ from: "11:00", to: "12:30", ...delay })];
        const judged = blackedOut(windows, ms);
        const due = judged?.dueMs ?? ms;
        expect(due).toBeGreaterThanOrEqual(ms);
        for (const window of windows) expect(endOfWindow(window, due)).toBeNull();
      }),
      { numRuns: 300 },
    );
  });
});
