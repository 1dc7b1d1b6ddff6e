/** Converts a comparison of two versions of a calendar to JSON; the command line's --json and the HTTP API return the same form. */

import type { CalendarContent } from "../schedule/calendar.ts";
import { comingHolidays, isShrunk } from "../schedule/calendar-days.ts";
import type { CalendarComparison, Placed } from "../slots/calendar-changes.ts";
import { iso, isoTime } from "./run-json.ts";

/** @param names the names of holidays by day, as in the calendar files */
export function comparisonObject(
  { present, content, added, removed, tasks, tasksLeft }: CalendarComparison,
  names: ReadonlyMap<string, string>,
  nowMs: number,
) {
  const side = (one: CalendarContent) => ({
    zone: one.zone,
    weekend: one.weekend,
    coming: comingHolidays(one, nowMs),
  });
  const named = (day: string) => ({ day, name: names.get(day) ?? present.names[day] ?? null });
  return {
    name: present.name,
    version: present.version,
    was: side(present),
    is: side(content),
    added: added.map(named),
    removed: removed.map(named),
    shrinks: isShrunk(present, content, nowMs),
    tasks: tasks.map(({ task, changes, total, isCut }) => ({
      task,
      total,
      more: isCut,
      slots: changes.map(({ nominalMs, was, is }) => ({
        slot: isoTime(nominalMs),
        was: placeObject(was),
        is: placeObject(is),
      })),
    })),
    tasksLeft,
  };
}

const placeObject = ({ slotMs, dueMs, note }: Placed) => ({ slot: isoTime(slotMs), due: iso(dueMs), note });
