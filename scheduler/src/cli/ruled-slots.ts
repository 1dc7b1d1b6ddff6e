import { type ComingTask, comingSlots, judgedSlot } from "../coming-slots.ts";
import { plannedSchedule } from "../slot-rules.ts";
import type { TaskRecord } from "../store.ts";
import type { Zone } from "../zone.ts";
import { timeText } from "./times.ts";

const scheduleOf = ({ definition, calendar }: TaskRecord) => plannedSchedule(definition, calendar);
const coming = (record: TaskRecord): ComingTask => ({
  definition: record.definition,
  schedule: scheduleOf(record),
  seed: record.taskId,
});

/** The next slots as they are planned; those that will be skipped too, since they are accounted for. */
export function plannedSlots(record: TaskRecord, afterMs: number, count: number): number[] {
  const schedule = scheduleOf(record);
  const slots: number[] = [];
  for (let slot = schedule.next(afterMs); slot !== null && slots.length < count; slot = schedule.next(slot))
    slots.push(slot);
  return slots;
}

/** The next slot that its calendar and blackouts let run. */
export const nextFire = (record: TaskRecord, nowMs: number): number | null =>
  comingSlots(coming(record), nowMs, 1)[0] ?? null;

/** What calendar and blackouts make of a slot; "": nothing. Jitter is in it: a slot that it puts into a blackout is told. */
export function ruleText(record: TaskRecord, slotMs: number, zone: Zone): string {
  const { dueMs, note, skipped } = judgedSlot(coming(record), slotMs);
  if (skipped !== undefined) return `skipped: ${skipped}`;
  if (note === undefined) return "";
  return dueMs === slotMs ? note : `${note}, runs ${timeText(dueMs, zone)}`;
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
