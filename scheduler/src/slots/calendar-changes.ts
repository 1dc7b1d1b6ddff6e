/** Computes how a new version of a calendar would change future slots of the tasks that use it, before the version is stored. */
import { type Clock, pause } from "../base/clock.ts";
import { limits } from "../base/limits.ts";
import {
  beginOf,
  type Calendar,
  type CalendarContent,
  type CalendarRule,
  calendarContent,
  calendarSchedule,
  dayMs,
  localDayOf,
  MovingSchedule,
  movedDaysMax,
  movedTo,
  type RunDays,
  runDays,
} from "../schedule/calendar.ts";
import { missingDays } from "../schedule/calendar-days.ts";
import { compileSchedule, type Schedule } from "../schedule/schedule.ts";
import { plannedSchedule } from "../schedule/slot-rules.ts";
import type { CalendarRecord, CalendarStore } from "../task/calendar-store.ts";
import type { TaskRecord } from "../task/task-record.ts";
import type { TaskStore } from "../task/task-store.ts";
import { judgedSlot } from "./coming-slots.ts";
import type { HistoryStore } from "./history-store.ts";

/** Whether and when a slot runs. Its nominal time is the time that the task's own schedule gives it, before a calendar moves it. */
export interface Placed {
  slotMs: number;
  /** null if the slot does not run; `note` gives the reason. */
  dueMs: number | null;
  note: string;
}

export interface SlotChange {
  nominalMs: number;
  was: Placed;
  is: Placed;
}

export interface TaskChanges {
  task: string;
  /** The first changes in the order of their nominal times. */
  changes: SlotChange[];
  total: number;
  /** True if the search ended at its limit, so that `total` is a lower bound. */
  isCut: boolean;
  /** The nominal times of all changes. */
  nominalMs: number[];
}

export interface CalendarComparison {
  present: CalendarRecord;
  content: CalendarContent;
  added: string[];
  removed: string[];
  /** The tasks of which a slot changes. */
  tasks: TaskChanges[];
  /** The number of tasks that use the calendar but were not examined, because there are too many. */
  tasksLeft: number;
}

interface Version {
  days: RunDays;
  rule: CalendarRule;
  moving: MovingSchedule | undefined;
  planned: Schedule;
}

/**
 * Compares the stored version of a calendar with another one.
 * @param given the version that would be stored
 * @param sees returns true if the caller may see a task; other tasks are left out
 * @throws CALENDAR_UNKNOWN, CALENDAR_INVALID, ZONE_UNKNOWN
 */
export async function compareCalendar(
  store: {
    calendars: Pick<CalendarStore, "find">;
    tasks: Pick<TaskStore, "byNames">;
    history: Pick<HistoryStore, "accounted">;
  },
  name: string,
  given: CalendarContent,
  { nowMs, clock, sees = () => true }: { nowMs: number; clock: Clock; sees?: (task: string) => boolean },
): Promise<CalendarComparison> {
  const content = calendarContent(given);
  const present = await store.calendars.find(name);
  const seen = present.tasks.filter(sees);
  const records = await store.tasks.byNames(seen.slice(0, limits.comparedTasks));
  const tasks: TaskChanges[] = [];
  for (const record of records.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const next = { name, version: present.version + 1, ...content };
    let found = slotChanges(record, present, next, nowMs);
    // A nominal time that is recorded in the ledger (as run, skipped or missed) does not run again with either version.
    const accounted = await store.history.accounted(record.taskId, found.nominalMs, nowMs);
    if (accounted.size > 0) found = slotChanges(record, present, next, nowMs, accounted);
    if (found.total > 0) tasks.push({ task: record.name, ...found });
    // Lets the event loop serve other requests, because computing one task may take some milliseconds.
    await pause(clock, 0);
  }
  return {
    present,
    content,
    added: missingDays(content.holidays, present.holidays),
    removed: missingDays(present.holidays, content.holidays),
    tasks,
    tasksLeft: Math.max(0, seen.length - limits.comparedTasks),
  };
}

/**
 * Finds the slots up to limits.comparedDays days ahead that the version `is` moves, skips or no longer skips. The search ends after
 * limits.comparedSlots slots; `changes` has at most the first limits.comparedSlotsShown.
 * @param accounted nominal times that the ledger has recorded already; they are left out
 */
export function slotChanges(
  record: Pick<TaskRecord, "definition" | "taskId">,
  was: Calendar,
  is: Calendar,
  nowMs: number,
  accounted: ReadonlySet<number> = new Set(),
): Omit<TaskChanges, "task"> {
  const { schedule, calendar: rule } = record.definition;
  const found = { changes: [] as SlotChange[], total: 0, isCut: false, nominalMs: [] as number[] };
  if (!rule || (schedule.type === "every" && schedule.mode === "delay")) return found;
  const base = compileSchedule(schedule);
  const [before, after] = [was, is].map((calendar) => versionOf(record, base, rule, calendar)) as [Version, Version];
  const isOneZone = was.zone === is.zone;
  // A slot of up to `movedDaysMax` days ago may have been moved to a time in the future.
  let at = nowMs - (rule.otherwise === "next" ? (movedDaysMax + 1) * dayMs : 0);
  const untilMs = nowMs + limits.comparedDays * dayMs;
  let looked = 0;
  for (;;) {
    const nominalMs = base.next(at);
    if (nominalMs === null || nominalMs > untilMs) return found;
    at = nominalMs;
    const day = localDayOf(after.days.zone, nominalMs);
    if (isOneZone && targetOf(before, day) === targetOf(after, day)) {
      at = Math.max(nominalMs, beginOf(after.days.zone, (day + 1) * dayMs) - 1);
      continue;
    }
    if (looked++ >= limits.comparedSlots) return { ...found, isCut: true };
    const [old, fresh] = [placed(record, before, nominalMs), placed(record, after, nominalMs)];
    if (old.slotMs <= nowMs && fresh.slotMs <= nowMs) continue;
    if ((old.slotMs === fresh.slotMs && old.dueMs === fresh.dueMs) || accounted.has(nominalMs)) continue;
    found.total++;
    found.nominalMs.push(nominalMs);
    if (found.changes.length < limits.comparedSlotsShown)
      found.changes.push({ nominalMs, was: old, is: passed(fresh, nominalMs, nowMs) });
  }
}

function versionOf(
  { definition }: Pick<TaskRecord, "definition">,
  base: Schedule,
  rule: CalendarRule,
  calendar: Calendar,
): Version {
  const moving = calendarSchedule(base, rule, calendar);
  return {
    days: runDays(calendar, rule.on),
    rule,
    moving: moving instanceof MovingSchedule ? moving : undefined,
    planned: plannedSchedule(definition, calendar),
  };
}

/** Returns the day to which the slots of `day` are moved; null if they are skipped. */
function targetOf({ days, rule: { otherwise } }: Version, day: number): number | null {
  if (days.allows(day)) return day;
  return otherwise === "skip" ? null : movedTo(days, day, otherwise === "next" ? 1 : -1);
}

function placed(
  { definition, taskId }: Pick<TaskRecord, "definition" | "taskId">,
  { moving, planned }: Version,
  nominalMs: number,
): Placed {
  const slotMs = moving?.placeOf(nominalMs) ?? nominalMs;
  const { dueMs, skipped, note = "" } = judgedSlot({ definition, schedule: planned, seed: taskId }, slotMs);
  return skipped === undefined ? { slotMs, dueMs, note } : { slotMs, dueMs: null, note: `skipped: ${skipped}` };
}

/**
 * A slot that the new version moves to a time before now does not run. When the version is stored, the store records the slot as skipped or
 * missed.
 */
function passed(place: Placed, nominalMs: number, nowMs: number): Placed {
  if (place.slotMs > nowMs) return place;
  const note = nominalMs > nowMs ? "skipped: moved to a time that has passed" : "missed: its own time has passed";
  return { ...place, dueMs: null, note };
}
