/** The task options that restrict slots, `calendar` and `blackout`: their types and validation, and the schedule that results. */

import { CarillonError, within } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { meant } from "../base/nearest.ts";
import { type BlackoutWindow, blackedOut, type Steps } from "./blackout.ts";
import { type Calendar, type CalendarRule, calendarSchedule, MovingSchedule, weekdayOf } from "./calendar.ts";
import { judgedSchedule, withoutAccounted } from "./judged-schedule.ts";
import { at, compileSchedule, jitterMsOf, type Schedule, type ScheduleSpec } from "./schedule.ts";
import { zoneName } from "./zone.ts";
import { inZones, ownZones, type ZonesInForce } from "./zone-rules.ts";

export interface CalendarOptions {
  /** The name under which `carillon calendars set` stored the calendar. */
  name: string;
  /** The days on which the task runs; default "working-days". */
  on?: "working-days" | "holidays";
  /** Whether a slot on another day is skipped (default), or moved to the next or previous permitted day. */
  otherwise?: "skip" | "next" | "previous";
}

export type BlackoutOptions = {
  /** A local time of day such as "22:00", or an instant such as "2026-12-24T12:00:00Z". */
  from: string;
  to: string;
  /** The zone of local times; default UTC. */
  zone?: string;
  /** The days on which a window of local times begins, such as ["fri", "sat"]; default: every day. */
  days?: string[];
  /** Whether slots in the window are skipped (default) or delayed until its end. */
  then?: "skip" | "delay";
};

export interface SlotRuleOptions {
  /** Restricts the task to certain days of a stored calendar; null: no calendar. */
  calendar?: CalendarOptions | null;
  /** Times in which the task's slots do not start; null: none. */
  blackout?: BlackoutOptions[] | null;
}

/**
 * The validated rules. A field that a task does not use is absent, so that the stored text of definitions without rules does not change.
 */
export interface SlotRules {
  calendar?: CalendarRule;
  blackout?: BlackoutWindow[];
}

/**
 * The days on which a task with a calendar runs, and what happens to a slot on another day. The first value of each list is the default.
 */
export const calendarDays = ["working-days", "holidays"] as const;
export const calendarMoves = ["skip", "next", "previous"] as const;
/** What happens to a slot in a blackout window; the first value is the default. */
export const blackoutEnds = ["skip", "delay"] as const;

/** Validates the options. @throws TASK_INVALID, ZONE_UNKNOWN */
export function slotRules(task: string, { calendar, blackout }: SlotRuleOptions, schedule: ScheduleSpec): SlotRules {
  const rules: SlotRules = {};
  if (calendar !== undefined && calendar !== null) rules.calendar = calendarRule(task, calendar);
  const windows = blackoutWindows(task, blackout ?? []);
  if (windows.length > 0) rules.blackout = windows;
  checkRules(task, rules, schedule);
  return rules;
}

/** Refuses rules that cannot be combined with a fixed delay. @throws TASK_INVALID */
export function checkRules(task: string | undefined, { calendar, blackout }: SlotRules, schedule: ScheduleSpec): void {
  if (schedule.type !== "every" || schedule.mode !== "delay") return;
  if (calendar)
    throw wrong(
      task,
      "calendar",
      "a fixed delay has no calendar",
      "Its slots follow from its runs. Use the mode rate, or a cron.",
    );
  if (blackout?.some(({ then }) => then === "skip"))
    throw wrong(
      task,
      "blackout",
      "a fixed delay cannot skip",
      'Its next slot follows from a run. Give its blackouts then: "delay".',
    );
}

/** Validates the option `calendar`. @throws TASK_INVALID */
export function calendarRule(task: string | undefined, given: unknown): CalendarRule {
  const { name, on, otherwise } = only<CalendarOptions>(task, "calendar", given, ["name", "on", "otherwise"]);
  if (!isCalendarName(name))
    throw wrong(task, "calendar.name", `calendar.name cannot be ${shownValue(name)}`, calendarNameHint);
  return {
    name,
    on: oneOf(task, "calendar.on", on ?? calendarDays[0], calendarDays),
    otherwise: oneOf(task, "calendar.otherwise", otherwise ?? calendarMoves[0], calendarMoves),
  };
}

/** Validates the option `blackout`. @throws TASK_INVALID, ZONE_UNKNOWN */
export function blackoutWindows(task: string | undefined, given: unknown): BlackoutWindow[] {
  const most = limits.blackoutWindows;
  if (!Array.isArray(given) || given.length > most)
    throw wrong(task, "blackout", `blackout must be a list of at most ${most} windows`, "Leave out what is past.");
  return given.map((window, at) => windowOf(task, `blackout[${at}]`, window));
}

const windowNames = ["from", "to", "zone", "days", "then"] as const;
const clock = /^(?:[01]\d|2[0-3]):[0-5]\d$/;
const windowHint = 'Both are local times such as "22:00", or both moments such as "2026-12-24T12:00:00Z".';

function windowOf(task: string | undefined, path: string, given: unknown): BlackoutWindow {
  const { from, to, zone, days, then } = only<BlackoutOptions>(task, path, given, windowNames);
  const ending = oneOf(task, `${path}.then`, then ?? blackoutEnds[0], blackoutEnds);
  if (clock.test(String(from)) && clock.test(String(to))) {
    if (from === to)
      throw wrong(task, path, `blackout from ${from} to ${to} has no length`, "For whole days use a calendar.");
    const named = within(`${path}.zone`, () => zoneName(zone ?? "UTC"));
    // biome-ignore lint/suspicious/noThenProperty: see BlackoutWindow.
    return { from, to, zone: named, days: daysOf(task, `${path}.days`, days), then: ending };
  }
  if (zone !== undefined || days !== undefined)
    throw wrong(task, path, "blackout: moments have neither zone nor days", windowHint);
  const [fromMs, toMs] = (["from", "to"] as const).map((name) => {
    try {
      const spec = at(name === "from" ? from : to);
      return spec.type === "at" ? spec.atMs : Number.NaN;
    } catch (cause) {
      throw wrong(task, `${path}.${name}`, `blackout: ${(cause as Error).message}`, windowHint);
    }
  }) as [number, number];
  if (fromMs >= toMs) throw wrong(task, path, `blackout: from ${from} does not lie before to ${to}`, "Change the two.");
  // biome-ignore lint/suspicious/noThenProperty: see BlackoutWindow.
  return { fromMs, toMs, then: ending };
}

/** Converts the names of days to numbers; null if no days are given, which means every day. */
function daysOf(task: string | undefined, path: string, days: unknown): number[] | null {
  if (days === undefined) return null;
  if (!Array.isArray(days) || days.length === 0)
    throw wrong(task, path, `${path} must be a list of days`, 'Such as ["sat", "sun"]; leave it out for every day.');
  try {
    return [...new Set(days.map((day) => weekdayOf(String(day))))].sort();
  } catch (cause) {
    throw wrong(task, path, `${path}: ${(cause as Error).message}`, 'Such as ["sat", "sun"].');
  }
}

const wrong = (task: string | undefined, path: string, what: string, hint: string) =>
  new CarillonError("TASK_INVALID", task === undefined ? what : `task ${task}: ${what}`, { hint, path });

function oneOf<const T extends string>(task: string | undefined, path: string, value: unknown, allowed: readonly T[]) {
  if (allowed.includes(value as T)) return value as T;
  throw wrong(task, path, `${path} cannot be ${shownValue(value)}`, `Give one of ${allowed.join(", ")}.`);
}

function only<Given>(task: string | undefined, path: string, given: unknown, names: readonly string[]): Given {
  const hint = `It has ${names.join(", ")}.`;
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw wrong(task, path, `${path} must be an object`, hint);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown === undefined) return given as Given;
  const what = `${path} has no ${JSON.stringify(unknown)}${meant(unknown, names)}`;
  throw wrong(task, `${path}.${unknown}`, what, hint);
}

export const isCalendarName = (name: unknown): name is string =>
  typeof name === "string" && /^[\p{L}\p{N}][\p{L}\p{N}._:/@-]{0,99}$/u.test(name);
export const calendarNameHint = "Use 1 to 100 letters, digits and . _ : / @ -, the first a letter or digit.";

/** @throws CALENDAR_INVALID if the name is not valid */
export function checkCalendarName(name: string): void {
  if (isCalendarName(name)) return;
  throw new CarillonError("CALENDAR_INVALID", `a calendar's name cannot be ${shownValue(name)}`, {
    hint: calendarNameHint,
  });
}

function blackedOutSchedule(base: Schedule, windows: readonly BlackoutWindow[], jitterMs: number): Schedule {
  const steps: Steps = new Map();
  return judgedSchedule(base, (slotMs, dueMs) => {
    const before = base.judge?.(slotMs, dueMs);
    if (before?.skipped !== undefined) return before;
    const after = blackedOut(windows, dueMs, steps);
    if (after?.skipped !== undefined) {
      // A later slot may have less jitter. Therefore `untilMs` is computed without this slot's jitter and reduced by the maximum
      // jitter.
      const { untilMs } = dueMs === slotMs ? after : (blackedOut(windows, slotMs, steps) ?? {});
      return { ...after, untilMs: untilMs === undefined ? undefined : untilMs - jitterMs };
    }
    return after && before ? { ...after, note: `${before.note}; ${after.note}` } : (after ?? before);
  });
}

/**
 * Returns the schedule by which a task is planned: its own schedule, restricted by its calendar and its blackout windows.
 * @param accountedMs nominal times (before a calendar moves them) that are recorded as past slots already: see TaskRecord
 * @param zones the zone rules to use; default: this process's own
 */
export function plannedSchedule(
  given: { schedule: ScheduleSpec } & SlotRules,
  daysGiven: Calendar | undefined,
  accountedMs: readonly number[] = [],
  zones: ZonesInForce = ownZones,
): Schedule {
  const { definition, calendar } = ruledIn(given, daysGiven, zones);
  const { schedule, calendar: rule, blackout } = definition;
  const plain = compileSchedule(schedule);
  const moved = rule && calendar ? calendarSchedule(plain, rule, calendar) : plain;
  const ruled = blackout ? blackedOutSchedule(moved, blackout, jitterMsOf(schedule)) : moved;
  return accountedMs.length > 0 ? withoutAccounted(ruled, accountedMs) : ruled;
}

/** A task's schedule and rules, with the calendar that its rule names. */
export interface Ruled {
  definition: { schedule: ScheduleSpec } & SlotRules;
  calendar: Calendar | undefined;
  /** The zone rules for schedule and calendar; absent: this process's own. */
  zones?: ZonesInForce;
}

/** Replaces the zones in a task's schedule, blackouts and calendar by those with the rules in force. */
export function ruledIn(definition: Ruled["definition"], calendar: Calendar | undefined, zones: ZonesInForce): Ruled {
  const zone = calendar && zones.named(calendar.zone);
  return {
    definition: inZones(definition, zones),
    calendar: calendar && zone !== calendar.zone ? { ...calendar, zone: zone as string } : calendar,
    zones,
  };
}

/**
 * Returns nominal times after `nowMs` whose slots a change of the task or its calendar moves to `nowMs` or earlier. The planner
 * continues from `nowMs`, so it will not plan these slots.
 */
export function slotsPassed(ruled: Ruled, nowMs: number): number[] {
  return movingOf(ruled)?.passedBy(nowMs, slotsMovedMax) ?? [];
}

/** Returns nominal times up to `nowMs` whose slots are postponed until after `nowMs`; at most `slotsMovedMax`. */
export function slotsPutOff(ruled: Ruled, nowMs: number): number[] {
  return movingOf(ruled)?.putOff(nowMs, slotsMovedMax) ?? [];
}

/**
 * Returns nominal times whose slots were postponed to a later day, and which a change moves back to a time that has passed, or removes.
 * Before the change, the planner left these slots for later; after it, the planner continues from `nowMs` and would miss them.
 * @param moved maps nominal times before the change to those after it: see zone-rules.ts
 */
export function slotsPutBack(
  before: Ruled,
  after: Ruled,
  nowMs: number,
  moved: ReadonlyMap<number, number> = new Map(),
): number[] {
  const placeOf = placesOf(after);
  return slotsPutOff(before, nowMs).filter((atMs) => (placeOf(moved.get(atMs) ?? atMs) ?? nowMs) <= nowMs);
}

/** Returns a function that converts a nominal time to its slot's time; null if the schedule does not have the nominal time. */
export function placesOf(ruled: Ruled): (nominalMs: number) => number | null {
  const plain = compileSchedule(ruled.definition.schedule);
  const moving = movingOf(ruled);
  return (nominalMs) => {
    if (plain.next(nominalMs - 1) !== nominalMs) return null;
    return moving?.placeOf(nominalMs) ?? nominalMs;
  };
}

function movingOf({ definition: { schedule, calendar: rule }, calendar }: Ruled): MovingSchedule | undefined {
  if (!rule || !calendar) return undefined;
  const moving = calendarSchedule(compileSchedule(schedule), rule, calendar);
  return moving instanceof MovingSchedule ? moving : undefined;
}

const slotsMovedMax = 10_000;
