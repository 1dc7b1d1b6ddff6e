import type { Zone } from "../../schedule/zone.ts";
import { judgedSlot } from "../../slots/coming-slots.ts";
import { coming } from "../../slots/upcoming-slots.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import { timeText } from "../screen/times.ts";

/**
 * Describes the effect of the calendar and the blackouts on a slot; "" if they have none. Jitter is applied first, so a slot that jitter
 * moves into a blackout is reported.
 */
export function ruleText(record: TaskRecord, slotMs: number, zone: Zone): string {
  const { dueMs, note, skipped } = judgedSlot(coming(record), slotMs);
  if (skipped !== undefined) return `skipped: ${skipped}`;
  if (note === undefined) return "";
  return dueMs === slotMs ? note : `${note}, runs ${timeText(dueMs, zone)}`;
}

/** Describes a task's calendar and blackouts, separated by "; ". */
export function rulesText({ definition: { calendar, blackout = [] }, calendar: present }: TaskRecord): string {
  const words = blackout.map((window) =>
    "fromMs" in window
      ? `${window.then} from ${new Date(window.fromMs).toISOString()} to ${new Date(window.toMs).toISOString()}`
      : `${window.then} from ${window.from} to ${window.to} ${window.zone}`,
  );
  if (!calendar) return words.join("; ");
  const moved = { skip: "skipped", next: "moved to the next", previous: "moved to the last before" }[
    calendar.otherwise
  ];
  const version = present ? ` (version ${present.version})` : "";
  return [`only on ${calendar.on} of calendar ${calendar.name}${version}, others ${moved}`, ...words].join("; ");
}
