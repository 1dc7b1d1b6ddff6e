import { describe, expect, it } from "vitest";
import { cron, every, type ScheduleSpec } from "./schedule.ts";
import { plannedSchedule, ruledIn } from "./slot-rules.ts";
import { ruledZone, type Zone, type ZoneRules, zoneOf } from "./zone.ts";
import { inZones, movedTimes, ownRules, ownZones, sameRules, zonesUsed } from "./zone-rules.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const nowMs = Date.UTC(2026, 10, 28);
const iso = (ms: number) => new Date(ms).toISOString().slice(0, 16);

const rulesOf = (name: string): ZoneRules => ownRules(name, nowMs);
/** Returns the zone's rules with all offsets from `fromMs` on increased by `byMs`. */
function shifted(name: string, byMs: number, fromMs: number): ZoneRules {
  const { startsMs, offsetsMs, toMs } = rulesOf(name);
  const place = startsMs.findLastIndex((startMs) => startMs <= fromMs);
  return {
    startsMs: [...startsMs.slice(0, place + 1), fromMs, ...startsMs.slice(place + 1)],
    offsetsMs: [...offsetsMs.slice(0, place + 1), ...offsetsMs.slice(place).map((offset) => offset + byMs)],
    toMs,
  };
}
const named = (spec: ScheduleSpec, rules: ZoneRules) =>
  inZones({ schedule: spec }, { named: (zone) => ruledZone(zone, rules) }).schedule;

describe("time zone rules", () => {
  it("are the runtime's, and reproduce the same slots", () => {
    for (const name of ["America/New_York", "Africa/Casablanca", "Asia/Tokyo", "Australia/Lord_Howe", "UTC"]) {
      const rules = rulesOf(name);
      const again = zoneOf(ruledZone(name, rules));
      expect(again.name).toBe(name);
      const [fromMs, toMs] = [rules.startsMs[0] as number, rules.toMs];
      const changes = (zone: Zone) =>
        Array.from(zone.transitions(fromMs, toMs), ({ from, offset, entered }) => [from, offset, entered]);
      expect(changes(again)).toEqual(changes(zoneOf(name)));
    }
  });

  it("apply within their time range; before and after it, the runtime's rules apply", () => {
    const rules = { startsMs: [nowMs], offsetsMs: [2 * hourMs], toMs: nowMs + 300 * dayMs };
    const zone = zoneOf(ruledZone("Asia/Tokyo", rules));
    const offsets = [nowMs - 1, nowMs, nowMs + 300 * dayMs - 1, nowMs + 300 * dayMs].map(
      (at) => zone.at(at).offset / hourMs,
    );
    expect(offsets).toEqual([9, 2, 2, 9]);
  });

  it("are equal if they have the same offset at every instant that both cover", () => {
    const own = rulesOf("America/New_York");
    expect(sameRules(own, ownRules("America/New_York", nowMs + 800 * dayMs)), "of other years").toBe(true);
    expect(sameRules(own, shifted("America/New_York", 0, nowMs)), "a change that changes nothing").toBe(false);
    expect(sameRules(own, shifted("America/New_York", hourMs, nowMs + 900 * dayMs))).toBe(false);
    expect(sameRules(own, rulesOf("America/Toronto"))).toBe(true);
    expect(sameRules(rulesOf("Asia/Tokyo"), rulesOf("Asia/Seoul"))).toBe(true);
    expect(sameRules(rulesOf("Asia/Tokyo"), rulesOf("Asia/Manila"))).toBe(false);
  });

  it("are needed for the zones of a schedule, its blackouts and its calendar, except UTC", () => {
    const blackout = [
      // biome-ignore lint/suspicious/noThenProperty: an option's name.
      { from: "01:00", to: "02:00", zone: "Asia/Taipei", days: null, then: "skip" as const },
      // biome-ignore lint/suspicious/noThenProperty: an option's name.
      { fromMs: 1, toMs: 2, then: "skip" as const },
    ];
    const schedule = cron("0 9 * * *", { zone: "Europe/Berlin" });
    expect(zonesUsed({ schedule, blackout }, { zone: "Asia/Tokyo" })).toEqual([
      "Europe/Berlin",
      "Asia/Tokyo",
      "Asia/Taipei",
    ]);
    expect(zonesUsed({ schedule: cron("0 9 * * *") }, { zone: "UTC" })).toEqual([]);
    expect(zonesUsed({ schedule: every("1h") }, undefined)).toEqual([]);
  });

  it("change how a definition, its blackouts and its calendar are compiled, but not their text", () => {
    const rules = shifted("Asia/Tokyo", hourMs, nowMs);
    const zones = { named: (zone: string) => (zone === "Asia/Tokyo" ? ruledZone(zone, rules) : zone) };
    const schedule = cron("0 9 * * *", { zone: "Asia/Tokyo" });
    // biome-ignore lint/suspicious/noThenProperty: an option's name.
    const blackout = [{ from: "08:00", to: "08:30", zone: "Asia/Tokyo", days: null, then: "skip" as const }];
    const calendar = { name: "c", version: 1, zone: "Asia/Tokyo", weekend: [], holidays: ["2026-11-29"] };
    const rule = { name: "c", on: "working-days" as const, otherwise: "next" as const };
    const words = plannedSchedule({ schedule }, undefined, [], zones).words();
    expect(words).toBe(plannedSchedule({ schedule }, undefined).words());
    expect(iso(plannedSchedule({ schedule }, undefined, [], zones).next(nowMs) as number)).toBe("2026-11-28T23:00");
    const put = plannedSchedule({ schedule, calendar: rule }, calendar, [], zones);
    expect(iso(put.next(nowMs) as number), "the 29th is a holiday").toBe("2026-11-29T23:00");
    const dark = plannedSchedule({ schedule: cron("15 22 * * *"), blackout }, undefined, [], zones);
    const slotMs = dark.next(nowMs) as number;
    expect(dark.judge?.(slotMs, slotMs), "08:15 by no rules but these is 22:15 UTC").toHaveProperty("skipped");
    const definition = { schedule, blackout };
    expect(ruledIn(definition, calendar, ownZones)).toMatchObject({ definition, calendar });
    expect(inZones(definition, ownZones), "nothing is copied").toBe(definition);
  });
});

describe("local times that new rules move", () => {
  const spec = cron("0 9,17 * * *", { zone: "Asia/Tokyo" });
  const moves = (was: ZoneRules, is: ZoneRules, what: ScheduleSpec = spec, backMs = 0) =>
    movedTimes(named(what, was), named(what, is), { fromMs: nowMs - backMs, toMs: nowMs }).map(
      ({ wasMs, isMs }) => `${iso(wasMs)} ${iso(isMs)}`,
    );

  it("are those around now, by the old and by the new rules", () => {
    const later = shifted("Asia/Tokyo", -hourMs, nowMs - 10 * dayMs);
    // 09:00 in Tokyo is midnight UTC, which is the current time in this test.
    expect(moves(rulesOf("Asia/Tokyo"), later)).toEqual(["2026-11-28T00:00 2026-11-28T01:00"]);
    expect(moves(later, rulesOf("Asia/Tokyo"))).toEqual(["2026-11-28T01:00 2026-11-28T00:00"]);
    expect(moves(rulesOf("Asia/Tokyo"), later, spec, dayMs)).toEqual([
      "2026-11-27T00:00 2026-11-27T01:00",
      "2026-11-27T08:00 2026-11-27T09:00",
      "2026-11-28T00:00 2026-11-28T01:00",
    ]);
  });

  it("are empty if the rules differ at another time or not at all, or if the schedule has no zone", () => {
    const own = rulesOf("Asia/Tokyo");
    expect(moves(own, shifted("Asia/Tokyo", hourMs, nowMs + 3 * dayMs))).toEqual([]);
    expect(moves(own, own)).toEqual([]);
    expect(movedTimes(every("1h"), every("1h"), { fromMs: nowMs, toMs: nowMs })).toEqual([]);
  });

  it("do not include instants that the schedule has under both rules", () => {
    const shift = shifted("Asia/Tokyo", hourMs, nowMs - 10 * dayMs);
    expect(moves(rulesOf("Asia/Tokyo"), shift, cron("*/5 * * * *", { zone: "Asia/Tokyo" }))).toEqual([]);
    expect(moves(rulesOf("Asia/Tokyo"), shift, cron("0 8-20 * * *", { zone: "Asia/Tokyo" }))).toEqual([]);
  });
});
