/** Compares two versions of a calendar by their days. These functions are pure. */
import { CarillonError } from "../base/errors.ts";
import { type CalendarContent, dayText, localDayOf } from "./calendar.ts";
import { zoneOf } from "./zone.ts";

/** Returns the holidays of the first list that are missing in the second, in their order. */
export function missingDays(from: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return from.filter((day) => !known.has(day));
}

/** Returns the number of holidays from today on, in the calendar's zone. */
export function comingHolidays({ zone, holidays }: CalendarContent, nowMs: number): number {
  const today = dayText(localDayOf(zoneOf(zone), nowMs));
  return holidays.filter((day) => day >= today).length;
}

/** True if the new version has fewer than half of the future holidays. A damaged file is a more likely cause than an intended change. */
export const isShrunk = (was: CalendarContent, is: CalendarContent, nowMs: number): boolean =>
  2 * comingHolidays(is, nowMs) < comingHolidays(was, nowMs);

/** @throws CALENDAR_SHRINKS if the new version has fewer than half of the future holidays */
export function checkNotShrunk(name: string, was: CalendarContent, is: CalendarContent, nowMs: number): void {
  if (!isShrunk(was, is, nowMs)) return;
  const [before, after] = [comingHolidays(was, nowMs), comingHolidays(is, nowMs)];
  throw new CarillonError(
    "CALENDAR_SHRINKS",
    `calendar ${name} has ${before} coming ${before === 1 ? "holiday" : "holidays"}, and would have ${after}: nothing was changed`,
    {
      hint: "Look with `carillon calendars show NAME --compare FILE`. If it is meant, say --yes, or allowShrink: true in the API.",
    },
  );
}
