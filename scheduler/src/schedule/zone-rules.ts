/**
 * The time zone rules by which a cluster plans. Each release of the time zone database may change rules, and processes may have different
 * releases. Therefore the store has the rules that are in force, and every process plans by these rules: see docs/tasks/time-zones.md.
 */
import type { BlackoutWindow } from "./blackout.ts";
import { compileSchedule, type Schedule, type ScheduleSpec, zoneNameOf } from "./schedule.ts";
import { type Zone, type ZoneRules, zoneOf } from "./zone.ts";

/**
 * The stored rules begin with the calendar year two years ago, for queries about the past, and end before the calendar year
 * twenty years ahead.
 */
const yearsBack = 2;
const yearsAhead = 20;

/** Returns a zone's rules from this process's own time zone database. @throws ZONE_UNKNOWN */
export function ownRules(name: string, nowMs: number): ZoneRules {
  const year = new Date(nowMs).getUTCFullYear();
  return zoneOf(name).rules(Date.UTC(year - yearsBack, 0, 1), Date.UTC(year + yearsAhead, 0, 1));
}

/** True if `a` and `b` give the same offset at every instant that both of them cover. */
export function sameRules(a: ZoneRules, b: ZoneRules): boolean {
  const from = Math.max(a.startsMs[0] as number, b.startsMs[0] as number);
  const to = Math.min(a.toMs, b.toMs);
  const changes = ({ startsMs, offsetsMs }: ZoneRules) =>
    startsMs.flatMap((atMs, place) => (atMs > from && atMs < to ? [atMs, offsetsMs[place]] : []));
  const offsetAt = ({ startsMs, offsetsMs }: ZoneRules) => offsetsMs[startsMs.findLastIndex((atMs) => atMs <= from)];
  return offsetAt(a) === offsetAt(b) && String(changes(a)) === String(changes(b));
}

/** The rules in force for all zones of the cluster. */
export interface ZonesInForce {
  /**
   * Returns the name by which `zoneOf` finds the zone with the rules in force. It is the zone's own name if this process has the same
   * rules.
   */
  named(zone: string): string;
}

/** The zones for callers that use this process's own rules. */
export const ownZones: ZonesInForce = { named: (zone) => zone };

/** Returns the definition with its zones replaced by those with the rules in force; for compiling, not for display. */
export function inZones<T extends { schedule: ScheduleSpec; blackout?: BlackoutWindow[] }>(
  definition: T,
  zones: ZonesInForce,
): T {
  const { schedule, blackout } = definition;
  const own = zoneNameOf(schedule);
  const isOwn = own === null || zones.named(own) === own;
  const isBlackoutOwn = !blackout?.some((window) => "zone" in window && zones.named(window.zone) !== window.zone);
  if (isOwn && isBlackoutOwn) return definition;
  return {
    ...definition,
    schedule: own === null ? schedule : { ...schedule, zone: zones.named(own) },
    ...(blackout && {
      blackout: blackout.map((window) => ("zone" in window ? { ...window, zone: zones.named(window.zone) } : window)),
    }),
  };
}

/** Returns the names of the zones that a definition and its calendar use, except UTC, whose rules never change. */
export function zonesUsed(
  definition: { schedule: ScheduleSpec; blackout?: BlackoutWindow[] },
  calendar: { zone: string } | undefined,
): string[] {
  const windows = (definition.blackout ?? []).flatMap((window) => ("zone" in window ? [window.zone] : []));
  const names = [zoneNameOf(definition.schedule), calendar?.zone, ...windows];
  return [...new Set(names.filter((name) => name !== undefined && name !== null && name !== "UTC"))] as string[];
}

/** A time of a schedule whose local time is unchanged, but whose instant has changed with its zone's rules. */
export interface MovedTime {
  wasMs: number;
  isMs: number;
}

/** The offsets are compared from this time before the span to this time after it, because two offsets never differ by more. */
const apartMs = 26 * 3_600_000;
const timesMax = 10_000;

/**
 * Returns the times, in a span and up to about a day around it, whose local time the schedule has by both rules but at different instants.
 * A run at one of the two instants counts as a run at the other. An instant that the schedule has by both rules, such as every full hour,
 * is not moved, whatever its local time is.
 * @param was the schedule by the former rules
 * @param is the schedule by the rules now in force
 */
export function movedTimes(was: ScheduleSpec, is: ScheduleSpec, span: { fromMs: number; toMs: number }): MovedTime[] {
  const [before, after] = [zoneIn(was), zoneIn(is)];
  if (before === null || after === null || before === after) return [];
  const { apart, sinceMs } = difference(before, after, span.fromMs - apartMs, span.toMs + apartMs);
  if (apart === 0) return [];
  const [plainBefore, plainAfter] = [compileSchedule(was), compileSchedule(is)];
  const [fromMs, toMs] = [Math.max(span.fromMs, sinceMs) - 2 * apart, span.toMs + 2 * apart];
  const byLocal = new Map<string, number>();
  for (const [local, wasMs] of localTimes(plainBefore, before, fromMs, toMs))
    if (!has(plainAfter, wasMs)) byLocal.set(local, wasMs);
  const moved: MovedTime[] = [];
  for (const [local, isMs] of localTimes(plainAfter, after, fromMs, toMs)) {
    const wasMs = byLocal.get(local);
    if (wasMs !== undefined && !has(plainBefore, isMs)) moved.push({ wasMs, isMs });
  }
  return moved;
}

const zoneIn = (spec: ScheduleSpec): Zone | null => {
  const name = zoneNameOf(spec);
  return name === null ? null : zoneOf(name);
};

const has = (schedule: Schedule, atMs: number) => schedule.next(atMs - 1) === atMs;

/** Returns the largest difference between the offsets of two zones, and the first instant at which they differ. */
function difference(a: Zone, b: Zone, fromMs: number, toMs: number): { apart: number; sinceMs: number } {
  const changes = [a, b].flatMap((zone) => Array.from(zone.transitions(fromMs, toMs), ({ from }) => from));
  const differing = [fromMs, ...changes.sort((x, y) => x - y)]
    .map((atMs) => ({ atMs, apart: Math.abs(a.at(atMs).offset - b.at(atMs).offset) }))
    .filter(({ apart }) => apart > 0);
  return { apart: Math.max(0, ...differing.map(({ apart }) => apart)), sinceMs: differing[0]?.atMs ?? toMs };
}

/**
 * Returns the last `timesMax` times of a schedule in a span, by local time. When clocks go back, two times with the same local time have
 * different keys.
 */
function localTimes(schedule: Schedule, zone: Zone, fromMs: number, toMs: number): Map<string, number> {
  const times: number[] = [];
  for (
    let atMs = schedule.previous(toMs);
    atMs !== null && atMs >= fromMs && times.length < timesMax;
    atMs = schedule.previous(atMs)
  )
    times.push(atMs);
  const byLocal = new Map<string, number>();
  for (const atMs of times.reverse()) {
    const local = `${atMs + zone.at(atMs).offset}`;
    byLocal.set(byLocal.has(local) ? `${local} again` : local, atMs);
  }
  return byLocal;
}
