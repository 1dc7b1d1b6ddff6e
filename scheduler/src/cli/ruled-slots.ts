import { plannedSchedule } from "../slot-rules.ts";
import type { TaskRecord } from "../store.ts";
import type { Zone } from "../zone.ts";
import { timeText } from "./times.ts";

const scheduleOf = ({ definition, calendar }: TaskRecord) => plannedSchedule(definition, calendar);

/** Slots that are skipped are looked past, up to this many. */
const lookedPast = 10_000;

/** The next slots as they are planned; those that will be skipped too, since they are accounted for. */
export function plannedSlots(record: TaskRecord, afterMs: number, count: number): number[] {
  const schedule = scheduleOf(record);
  const slots: number[] = [];
  for (let slot = schedule.next(afterMs); slot !== null && slots.length < count; slot = schedule.next(slot))
    slots.push(slot);
  return slots;
}

/** The next slot that its calendar and blackouts let run. */
export function nextFire(record: TaskRecord, nowMs: number): number | null {
  const schedule = scheduleOf(record);
  let slot = schedule.next(nowMs);
  for (let seen = 0; slot !== null && schedule.judge?.(slot, slot)?.skipped !== undefined; seen++) {
    if (seen === lookedPast) return null;
    slot = schedule.next(slot);
  }
  return slot;
}

/** What calendar and blackouts make of a slot; "": nothing. */
export function ruleText(record: TaskRecord, slotMs: number, zone: Zone): string {
  const judged = scheduleOf(record).judge?.(slotMs, slotMs);
  if (!judged) return "";
  if (judged.skipped !== undefined) return `skipped: ${judged.skipped}`;
  return judged.dueMs === slotMs ? (judged.note ?? "") : `${judged.note}, runs ${timeText(judged.dueMs, zone)}`;
}

/** A task's rules in a clause each. */
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
