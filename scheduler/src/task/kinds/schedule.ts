/**
 * A task's schedule as an option. Code and the HTTP API give it as a `ScheduleSpec`; a file may also give it by the fields `cron`, `every`,
 * `rrule` and `at`.
 */
import { formatDuration } from "../../base/duration.ts";
import { CarillonError, within } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { calendarPeriodOf, calendarPeriodText } from "../../schedule/calendar-interval.ts";
import { scheduleOfText } from "../../schedule/phrase/schedule-text.ts";
import {
  at,
  type Bounds,
  cron,
  every,
  manual,
  rrule,
  type ScheduleSpec,
  validateSchedule,
} from "../../schedule/schedule.ts";
import { isObject, type Kind } from "./kinds.ts";

const hint =
  'Such as "0 2 * * *", { cron: "0 2 * * *", zone: "Europe/Berlin" }, { every: "5m" }, { every: "2 weeks", on: "MON", at: "09:00" }, { rrule: "FREQ=DAILY", start: "2027-01-01T09:00" }, { at: "2027-01-01T00:00:00Z" } or "manual".';

export const scheduleKind: Kind<ScheduleSpec> = {
  shape: { is: "schedule" },
  hint,
  read: (given, place) => within(place.path, () => validateSchedule(given)),
  write: writtenSchedule,
};

/**
 * Reads a schedule. A string can be "manual", a cron in UTC or preceded by a zone, "@every 5m", a recurrence rule, or a phrase.
 * @throws SCHEDULE_INVALID, TASK_INVALID and the errors of the schedule's own check, with paths relative to the schedule
 */
export function readSchedule(written: unknown): ScheduleSpec {
  if (typeof written === "string") return written.trim() === "manual" ? manual : scheduleOfText(written);
  if (!isObject(written)) throw invalid("schedule must be a text or an object");
  if ("type" in written) return validateSchedule(written);
  // If `every` is a period of the calendar, such as a month, `at` gives the times of day, and is not a kind of schedule.
  const isCalendar = calendarPeriodOf(written.every) !== null;
  const kinds = ["cron", "every", "rrule", "at"].filter((kind) => kind in written && !(isCalendar && kind === "at"));
  if (kinds.length !== 1)
    throw invalid(`schedule has ${kinds.length === 0 ? "none" : "more than one"} of cron, every, rrule, at`);
  const { cron: expression, every: period, rrule: rule, at: time, ...options } = written;
  if (expression !== undefined) return cron(expression as string, options);
  if (rule !== undefined) return rrule(rule as string, options);
  if (period !== undefined)
    return every(period as string, isCalendar && time !== undefined ? { ...options, at: time as string } : options);
  const stranger = Object.keys(options)[0];
  if (stranger !== undefined) throw invalid(`schedule.${stranger} does not go with at`, stranger);
  return at(time as string);
}

const invalid = (what: string, path = "") => new CarillonError("TASK_INVALID", what, { hint, path });

const writtenBounds = ({ fromMs, untilMs, times }: Bounds): { [name: string]: Json } => ({
  ...(fromMs === undefined ? {} : { from: new Date(fromMs).toISOString() }),
  ...(untilMs === undefined ? {} : { until: new Date(untilMs).toISOString() }),
  ...(times === undefined ? {} : { times }),
});

type Policies = Pick<ScheduleSpec & { type: "cron" }, "gap" | "overlap">;

/** Returns those of the policies for clock changes that differ from their defaults. */
const writtenPolicies = ({ gap, overlap }: Policies, usual: Policies): { [name: string]: Json } => ({
  ...(gap === usual.gap ? {} : { gap }),
  ...(overlap === usual.overlap ? {} : { overlap }),
});

const oneOrAll = <Item extends Json>(items: Item[]): Json => (items.length === 1 ? (items[0] as Item) : items);

export function writtenSchedule(spec: ScheduleSpec): Json {
  const jitter: { [name: string]: Json } =
    "jitterMs" in spec && spec.jitterMs
      ? { jitter: formatDuration(spec.jitterMs), ...(spec.jitterBy && { jitterBy: spec.jitterBy }) }
      : {};
  const bounds = spec.type === "at" || spec.type === "manual" ? {} : writtenBounds(spec);
  switch (spec.type) {
    case "cron": {
      const plain = cron(spec.expression, { zone: spec.zone }) as typeof spec;
      return { cron: spec.expression, zone: spec.zone, ...writtenPolicies(spec, plain), ...jitter, ...bounds };
    }
    case "interval": {
      const { on, at: times, zone, anchor, monthEnd } = spec;
      return {
        every: calendarPeriodText(spec),
        ...(on === undefined ? {} : { on: oneOrAll(on) }),
        at: oneOrAll(times),
        zone,
        anchor,
        ...(monthEnd === undefined ? {} : { monthEnd }),
        ...writtenPolicies(spec, { gap: "shift", overlap: "first" }),
        ...jitter,
        ...bounds,
      };
    }
    case "rrule": {
      const { rule, start, zone, rdate, exdate } = spec;
      const plain = rrule(rule, { start, zone }) as typeof spec;
      return {
        rrule: rule,
        start,
        zone,
        ...(rdate === undefined ? {} : { rdate }),
        ...(exdate === undefined ? {} : { exdate }),
        ...writtenPolicies(spec, plain),
        ...jitter,
        ...bounds,
      };
    }
    case "every":
      return {
        every: formatDuration(spec.everyMs),
        ...(spec.mode === "rate" ? {} : { mode: spec.mode }),
        ...(spec.anchorMs === undefined ? {} : { anchor: new Date(spec.anchorMs).toISOString() }),
        ...jitter,
        ...bounds,
      };
    case "at":
      return { at: new Date(spec.atMs).toISOString() };
    case "manual":
      return "manual";
  }
}
