import type { ScheduleSpec } from "../../../scheduler/src/schedule/schedule.ts";

/**
 * Returns the slots of a schedule, computed second by second with Intl and without any code of the scheduler. Meant for ranges
 * of minutes, and for cron expressions of lists, ranges and steps without restrictions on days. Empty for fixed delays and for
 * other types of schedule.
 */
export function slotsBetween(spec: ScheduleSpec, fromMs: number, toMs: number): number[] {
  if (spec.type === "at") return spec.atMs >= fromMs && spec.atMs <= toMs ? [spec.atMs] : [];
  if (spec.type === "every") return spec.mode === "rate" ? rate(spec.everyMs, spec.anchorMs ?? 0, fromMs, toMs) : [];
  return spec.type === "cron" ? cronSlots(spec, fromMs, toMs) : [];
}

function rate(everyMs: number, anchorMs: number, fromMs: number, toMs: number): number[] {
  const slots: number[] = [];
  for (let slot = anchorMs + Math.ceil((fromMs - anchorMs) / everyMs) * everyMs; slot <= toMs; slot += everyMs)
    slots.push(slot);
  return slots;
}

const dayMs = 86_400_000;

function cronSlots(spec: ScheduleSpec & { type: "cron" }, fromMs: number, toMs: number): number[] {
  const fields = spec.expression.split(" ");
  const [seconds = "0", minutes = "", hours = ""] = fields.length === 6 ? fields : ["0", ...fields];
  const [inSeconds, inMinutes, inHours] = [listed(seconds, 60), listed(minutes, 60), listed(hours, 24)];
  const matches = (localMs: number) => {
    const inDay = ((localMs % dayMs) + dayMs) % dayMs;
    return (
      inHours.has(Math.floor(inDay / 3_600_000)) &&
      inMinutes.has(Math.floor(inDay / 60_000) % 60) &&
      inSeconds.has(Math.floor(inDay / 1_000) % 60)
    );
  };
  const offset = offsets(spec.zone);
  const change = changeNear(offset, fromMs, toMs);
  const slots: number[] = [];
  for (let at = Math.ceil(fromMs / 1_000) * 1_000; at <= toMs; at += 1_000) {
    const local = at + offset(at);
    if (matches(local) && !isOtherTime(at, spec.overlap, change)) slots.push(at);
    else if (change && change.byMs > 0 && spec.gap === "shift" && at >= change.atMs && at < change.atMs + change.byMs) {
      // In a gap (DST), the slot moves later by the length of the gap.
      if (matches(local - change.byMs)) slots.push(at);
    }
  }
  return slots;
}

/** True for an instant in a repeated hour (DST) that the policy does not use: the first or the second pass of the hour. */
function isOtherTime(atMs: number, overlap: string, change: Change | undefined): boolean {
  if (!change || change.byMs >= 0 || overlap === "both") return false;
  const lengthMs = -change.byMs;
  const isFirst = atMs < change.atMs && atMs >= change.atMs - lengthMs;
  const isLast = atMs >= change.atMs && atMs < change.atMs + lengthMs;
  return overlap === "first" ? isLast : isFirst;
}

interface Change {
  atMs: number;
  byMs: number;
}

/** Returns the change of the zone's offset near that time; undefined: there is none. */
function changeNear(offset: (atMs: number) => number, fromMs: number, toMs: number): Change | undefined {
  const stepMs = 900_000;
  let before = offset(Math.floor(fromMs / stepMs) * stepMs - 4 * stepMs);
  for (let at = Math.floor(fromMs / stepMs) * stepMs - 4 * stepMs; at <= toMs + 4 * stepMs; at += stepMs) {
    const now = offset(at);
    if (now !== before) return { atMs: at, byMs: now - before };
    before = now;
  }
  return undefined;
}

const known = new Map<string, (atMs: number) => number>();

/**
 * Returns a function that computes the zone's offset in ms. Offsets change only at quarters of an hour, so it is computed once per quarter.
 */
function offsets(zone: string): (atMs: number) => number {
  const present = known.get(zone);
  if (present) return present;
  const format = new Intl.DateTimeFormat("en-US", {
    ...({ timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric" } as const),
    ...({ hour: "numeric", minute: "numeric", second: "numeric" } as const),
  });
  const cache = new Map<number, number>();
  const offset = (atMs: number) => {
    const quarter = Math.floor(atMs / 900_000) * 900_000;
    let found = cache.get(quarter);
    if (found === undefined) {
      const parts = Object.fromEntries(format.formatToParts(quarter).map(({ type, value }) => [type, Number(value)]));
      const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
      found = Date.UTC(year, month - 1, day, hour, minute, second) - quarter;
      cache.set(quarter, found);
    }
    return found;
  };
  known.set(zone, offset);
  return offset;
}

function listed(field: string, end: number): Set<number> {
  const values = new Set<number>();
  for (const part of field.split(",")) {
    const [range = "", step = "1"] = part.split("/");
    const [first, last = first] = range === "*" ? [0, end - 1] : range.split("-").map(Number);
    for (let value = first as number; value <= (last as number); value += Number(step)) values.add(value);
  }
  return values;
}
