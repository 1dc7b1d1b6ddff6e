/** A calendar's days in a year, computed by the planner's own code (`scheduler/src/schedule/calendar.ts`). */
import {
  type Calendar,
  type CalendarRule,
  compileSchedule,
  instantAt,
  localDayOf,
  runDays,
  type ScheduleSpec,
  zoneOf,
} from "carillon/schedule";

export const dayMs = 86_400_000;
export type DayKind = "work" | "weekend" | "holiday";
export type Content = Pick<Calendar, "zone" | "weekend" | "holidays">;

/** A day is represented as the number of days since 1970-01-01. */
export const dayOf = (year: number, month: number, date: number): number => Date.UTC(year, month, date) / dayMs;
export const dayText = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);
export const weekdayOf = (day: number): number => (((day + 4) % 7) + 7) % 7;
export const yearOf = (day: number): number => new Date(day * dayMs).getUTCFullYear();
export const todayIn = (zone: string, nowMs: number): number => localDayOf(zoneOf(zone), nowMs);

/** A holiday on a weekend counts as a holiday. */
export function kindsOf({ weekend, holidays }: Pick<Content, "weekend" | "holidays">): (day: number) => DayKind {
  const free = new Set(holidays);
  return (day) => (free.has(dayText(day)) ? "holiday" : weekend.includes(weekdayOf(day)) ? "weekend" : "work");
}

export function daysOfYear(year: number): number[] {
  const first = dayOf(year, 0, 1);
  return Array.from({ length: dayOf(year + 1, 0, 1) - first }, (_, at) => first + at);
}

/** A day on which the calendar blocks a task's slots. `firstMs` is the first blocked slot of the day, in epoch ms. */
export interface Blocked {
  day: number;
  firstMs: number;
  /** True if the day has more than one slot. */
  several: boolean;
  /** The day to which the slots are moved; null if they are skipped. */
  to: number | null;
}

/** The largest number of days by which a slot is moved; equal to `movedDaysMax` of the scheduler. */
const furthest = 400;

/**
 * The days from `from` to `to` (both included) on which the calendar blocks slots of a task. Empty for a task without a calendar, and
 * for a schedule that counts its interval from the end of the last run.
 */
export function blockedDays(
  { schedule, calendar: rule }: { schedule: ScheduleSpec; calendar?: CalendarRule | null | undefined },
  content: Content,
  from: number,
  to: number,
): Blocked[] {
  if (!rule || (schedule.type === "every" && schedule.mode === "delay")) return [];
  const base = compileSchedule(schedule);
  const { zone, allows } = runDays({ ...content, name: "", version: 0 }, rule.on);
  const blocked: Blocked[] = [];
  for (let day = from; day <= to; day++) {
    if (allows(day)) continue;
    const end = instantAt(zone, (day + 1) * dayMs);
    const firstMs = base.next(instantAt(zone, day * dayMs) - 1);
    if (firstMs === null) break;
    if (firstMs >= end) {
      // The next slot is on a later day; the loop continues with that day.
      day = Math.max(day, localDayOf(zone, firstMs) - 1);
      continue;
    }
    const second = base.next(firstMs);
    blocked.push({ day, firstMs, several: second !== null && second < end, to: target(rule, allows, day) });
  }
  return blocked;
}

function target(rule: CalendarRule, allows: (day: number) => boolean, day: number): number | null {
  if (rule.otherwise === "skip") return null;
  const way = rule.otherwise === "next" ? 1 : -1;
  for (let away = 1; away <= furthest; away++) if (allows(day + away * way)) return day + away * way;
  return null;
}
