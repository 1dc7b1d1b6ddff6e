/** A task's options that say when its slots are not to run: their shape, and the schedule that they make. */
import { type BlackoutWindow, blackedOut, type Steps } from "./blackout.ts";
import { type Calendar, type CalendarRule, calendarSchedule, MovingSchedule, weekdayOf } from "./calendar.ts";
import { CarillonError } from "./errors.ts";
import { shownValue } from "./json.ts";
import { judgedSchedule } from "./judged-schedule.ts";
import { limits } from "./limits.ts";
import { at, compileSchedule, jitterMsOf, type Schedule, type ScheduleSpec } from "./schedule.ts";
import { zoneName } from "./zone.ts";

export interface CalendarOptions {
  /** As `carillon calendars set` stored it. */
  name: string;
  /** Default "working-days". */
  on?: "working-days" | "holidays";
  /** What becomes of a slot on another day; default "skip". */
  otherwise?: "skip" | "next" | "previous";
}

export type BlackoutOptions = {
  /** "22:00", or a moment with an offset such as "2026-12-24T12:00:00Z". */
  from: string;
  to: string;
  /** Of local times; default UTC. */
  zone?: string;
  /** On which a window of local times begins, such as ["fri", "sat"]; default: every day. */
  days?: string[];
  /** Default "skip". */
  then?: "skip" | "delay";
};

export interface SlotRuleOptions {
  /** The days that it runs on, by a stored calendar; null: none. */
  calendar?: CalendarOptions | null;
  /** Times in which its slots do not start. */
  blackout?: BlackoutOptions[] | null;
}

/** Absent where a task has none, so that the text of definitions without them stays what it was. */
export interface SlotRules {
  calendar?: CalendarRule;
  blackout?: BlackoutWindow[];
}

/** @throws TASK_INVALID, ZONE_UNKNOWN */
export function slotRules(task: string, { calendar, blackout }: SlotRuleOptions, schedule: ScheduleSpec): SlotRules {
  const wrong = (what: string, hint: string) => new CarillonError("TASK_INVALID", `task ${task}: ${what}`, { hint });
  const oneOf = <const T extends string>(option: string, value: unknown, allowed: readonly T[]): T => {
    if (allowed.includes(value as T)) return value as T;
    throw wrong(`${option} cannot be ${shownValue(value)}`, `Give one of ${allowed.join(", ")}.`);
  };
  const only = (option: string, given: unknown, names: string[]): void => {
    if (typeof given !== "object" || given === null || Array.isArray(given))
      throw wrong(`${option} must be an object`, `It has ${names.join(", ")}.`);
    const stranger = Object.keys(given).find((name) => !names.includes(name));
    if (stranger !== undefined)
      throw wrong(`${option} has no ${JSON.stringify(stranger)}`, `It has ${names.join(", ")}.`);
  };
  const rules: SlotRules = {};
  if (calendar !== undefined && calendar !== null) {
    only("calendar", calendar, ["name", "on", "otherwise"]);
    if (schedule.type === "every" && schedule.mode === "delay")
      throw wrong("a fixed delay has no calendar", "Its slots follow from its runs. Use the mode rate, or a cron.");
    if (!isCalendarName(calendar.name))
      throw wrong(`calendar.name cannot be ${shownValue(calendar.name)}`, calendarNameHint);
    rules.calendar = {
      name: calendar.name,
      on: oneOf("calendar.on", calendar.on ?? "working-days", ["working-days", "holidays"]),
      otherwise: oneOf("calendar.otherwise", calendar.otherwise ?? "skip", ["skip", "next", "previous"]),
    };
  }
  if (blackout !== undefined && blackout !== null) {
    if (!Array.isArray(blackout) || blackout.length > limits.blackoutWindows)
      throw wrong(`blackout must be a list of at most ${limits.blackoutWindows} windows`, "Leave out what is past.");
    if (blackout.length > 0) rules.blackout = blackout.map((window) => windowOf(window));
    if (schedule.type === "every" && schedule.mode === "delay" && rules.blackout?.some(({ then }) => then === "skip"))
      throw wrong("a fixed delay cannot skip", 'Its next slot follows from a run. Give its blackouts then: "delay".');
  }
  return rules;

  function windowOf(window: BlackoutOptions): BlackoutWindow {
    only("blackout", window, ["from", "to", "zone", "days", "then"]);
    const { from, to, zone, days } = window;
    const ending = oneOf("blackout.then", window.then ?? "skip", ["skip", "delay"]);
    const clock = /^(?:[01]\d|2[0-3]):[0-5]\d$/;
    const form = 'Both are local times such as "22:00", or both moments such as "2026-12-24T12:00:00Z".';
    if (clock.test(String(from)) && clock.test(String(to))) {
      if (from === to) throw wrong(`blackout from ${from} to ${to} has no length`, "For whole days use a calendar.");
      if (days !== undefined && (!Array.isArray(days) || days.length === 0))
        throw wrong("blackout.days must be a list of days", 'Such as ["sat", "sun"]; leave it out for every day.');
      let begins: number[] | null = null;
      try {
        if (days !== undefined) begins = [...new Set(days.map((day) => weekdayOf(String(day))))].sort();
      } catch (cause) {
        throw wrong(`blackout.days: ${(cause as Error).message}`, 'Such as ["sat", "sun"].');
      }
      // biome-ignore lint/suspicious/noThenProperty: see BlackoutWindow.
      return { from, to, zone: zoneName(zone ?? "UTC"), days: begins, then: ending };
    }
    if (zone !== undefined || days !== undefined) throw wrong("blackout: moments have neither zone nor days", form);
    const [fromMs, toMs] = [from, to].map((text) => {
      try {
        const spec = at(text);
        return spec.type === "at" ? spec.atMs : Number.NaN;
      } catch (cause) {
        throw wrong(`blackout: ${(cause as Error).message}`, form);
      }
    }) as [number, number];
    if (fromMs >= toMs) throw wrong(`blackout: from ${from} does not lie before to ${to}`, "Change the two.");
    // biome-ignore lint/suspicious/noThenProperty: see BlackoutWindow.
    return { fromMs, toMs, then: ending };
  }
}

export const isCalendarName = (name: unknown): name is string =>
  typeof name === "string" && /^[\p{L}\p{N}][\p{L}\p{N}._:/@-]{0,99}$/u.test(name);
export const calendarNameHint = "Use 1 to 100 letters, digits and . _ : / @ -, the first a letter or digit.";

function blackedOutSchedule(base: Schedule, windows: readonly BlackoutWindow[], jitterMs: number): Schedule {
  const steps: Steps = new Map();
  return judgedSchedule(base, (slotMs, dueMs) => {
    const before = base.judge?.(slotMs, dueMs);
    if (before?.skipped !== undefined) return before;
    const after = blackedOut(windows, dueMs, steps);
    if (after?.skipped !== undefined) {
      // Later slots may be due earlier than this one, and those just before the end after it.
      const { untilMs } = dueMs === slotMs ? after : (blackedOut(windows, slotMs, steps) ?? {});
      return { ...after, untilMs: untilMs === undefined ? undefined : untilMs - jitterMs };
    }
    return after && before ? { ...after, note: `${before.note}; ${after.note}` } : (after ?? before);
  });
}

/** The schedule of a task as it is planned: its own, under its calendar and its blackout windows. */
export function plannedSchedule(
  { schedule, calendar: rule, blackout }: { schedule: ScheduleSpec } & SlotRules,
  calendar: Calendar | undefined,
): Schedule {
  const plain = compileSchedule(schedule);
  const moved = rule && calendar ? calendarSchedule(plain, rule, calendar) : plain;
  return blackout ? blackedOutSchedule(moved, blackout, jitterMsOf(schedule)) : moved;
}

/** Slots that a change of the task or its calendar puts into the past, where nobody would plan them. */
export function slotsPassed(
  { schedule, calendar: rule }: { schedule: ScheduleSpec } & SlotRules,
  calendar: Calendar | undefined,
  nowMs: number,
): number[] {
  if (!rule || !calendar || rule.otherwise !== "previous") return [];
  const moving = calendarSchedule(compileSchedule(schedule), rule, calendar);
  return moving instanceof MovingSchedule ? moving.passedBy(nowMs, slotsPassedMax) : [];
}

const slotsPassedMax = 1_000;
