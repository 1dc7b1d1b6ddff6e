import { CarillonError } from "../base/errors.ts";
import { type CalendarContent, calendarContent } from "../schedule/calendar.ts";
import { manual, type ScheduleSpec } from "../schedule/schedule.ts";
import { plannedSchedule, type SlotRuleOptions, slotRules } from "../schedule/slot-rules.ts";
import { type ComingTask, judgedSlot } from "../slots/coming-slots.ts";
import type { TaskDefinition } from "../task/task.ts";

const mostFires = 100_000;

/** A schedule, or an object that contains one: a task's options, or its definition. */
type Firing = ScheduleSpec | (SlotRuleOptions & { schedule?: ScheduleSpec }) | TaskDefinition;

/**
 * Computes the times in [from, to) at which a schedule fires, without running anything. A cron follows its zone through clock changes.
 * Slots that the calendar or a blackout excludes are left out; slots that they move or delay appear at the time at which they run. Jitter,
 * misfires and overlap are ignored.
 * @param calendar the days of the task's calendar, because the stored calendar is not read
 * @throws SCHEDULE_INVALID for a fixed delay, whose slots depend on its runs; OPTION_INVALID for an invalid time, for more than 100,000
 * fires and for a calendar whose days are not given
 */
export function firesBetween(
  of: Firing,
  from: Date | string | number,
  to: Date | string | number,
  { calendar }: { calendar?: CalendarContent } = {},
): Date[] {
  const spec = "type" in of ? of : (of.schedule ?? manual);
  if (spec.type === "every" && spec.mode === "delay") {
    throw new CarillonError("SCHEDULE_INVALID", "when a fixed delay fires depends on when its runs end", {
      hint: "Let a test tower run it: `tower.advance` returns what ended.",
    });
  }
  const rules = "type" in of ? {} : isDefinition(of) ? of : slotRules("firesBetween", of, spec);
  const { name } = rules.calendar ?? {};
  if (name !== undefined && calendar === undefined)
    throw new CarillonError("OPTION_INVALID", `the days of calendar ${name} are not given`, {
      hint: 'Give them: { calendar: { zone: "Europe/Berlin", weekend: [0, 6], holidays: ["2030-12-25"] } }.',
    });
  const days = calendar && name !== undefined ? { ...calendarContent(calendar), name, version: 1 } : undefined;
  const task = {
    definition: { schedule: spec },
    schedule: plannedSchedule({ ...rules, schedule: spec }, days),
    seed: null,
  };
  const [fromMs, toMs] = [timeOf(from), timeOf(to)];
  const fires: Date[] = [];
  for (let next = firstOf(task, fromMs); next !== null && next < toMs; next = task.schedule.next(next)) {
    const { dueMs, skipped } = judgedSlot(task, next);
    if (skipped !== undefined || dueMs < fromMs || dueMs >= toMs) continue;
    if (fires.length === mostFires)
      throw new CarillonError("OPTION_INVALID", `it fires more than ${mostFires} times between the two`, {
        hint: "Ask for a shorter time.",
      });
    fires.push(new Date(dueMs));
  }
  return fires.sort((a, b) => a.getTime() - b.getTime());
}

/** Returns the first slot that may fire at or after `fromMs`. It may be earlier, because a blackout can delay a slot. */
function firstOf(task: ComingTask, fromMs: number): number | null {
  let first = task.schedule.next(fromMs - 1);
  let before = task.schedule.previous(fromMs);
  for (let seen = 0; before !== null && seen < mostFires; seen++) {
    const { dueMs, skipped } = judgedSlot(task, before);
    if (skipped === undefined && dueMs < fromMs) break;
    first = before;
    before = task.schedule.previous(before);
  }
  return first;
}

const isDefinition = (of: object): of is TaskDefinition => "timeoutMs" in of;

/** Converts a time to epoch milliseconds. @throws OPTION_INVALID if it is not a time */
export function timeOf(given: Date | string | number): number {
  const ms = typeof given === "number" ? given : new Date(given).getTime();
  if (Number.isFinite(ms)) return ms;
  throw new CarillonError("OPTION_INVALID", `${JSON.stringify(given)} is no time`, {
    hint: 'Give a Date, epoch milliseconds, or a text with its offset such as "2030-03-01T00:00:00Z".',
  });
}
