/**
 * Computes the due slots. This file must not use Carillon, because a slot that Carillon forgets would then be missing on both sides of the
 * comparison. It supports only the cron syntax that the demo's schedules use, and throws for anything else.
 */
import type { ScheduleSpec } from "carillon";

/**
 * Returns the slots in [fromMs, toMs).
 * @throws RangeError for an unsupported schedule, and if the zone's clocks change in this time
 */
export function dueSlots(schedule: ScheduleSpec, fromMs: number, toMs: number): number[] {
  const slots: number[] = [];
  if (schedule.type === "every" && schedule.mode === "rate" && !schedule.anchorMs && !schedule.jitterMs) {
    const { everyMs } = schedule;
    for (let slot = Math.ceil(fromMs / everyMs) * everyMs; slot < toMs; slot += everyMs) slots.push(slot);
    return slots;
  }
  if (schedule.type !== "cron" || schedule.jitterMs) throw new RangeError(`not read here: ${JSON.stringify(schedule)}`);
  const matches = matcher(schedule.expression);
  const wall = wallClock(schedule.zone);
  // All zone offsets are whole minutes today, so the seconds field can be checked without the zone; that excludes most instants cheaply.
  const seconds = fields(schedule.expression)[0] as string;
  for (let slot = Math.ceil(fromMs / 1_000) * 1_000; slot < toMs; slot += 1_000) {
    if (inField(seconds, (slot / 1_000) % 60, 0, 59) && matches(wall(slot))) slots.push(slot);
  }
  if (offset(wall(fromMs), fromMs) !== offset(wall(toMs), toMs)) {
    throw new RangeError(`clocks change in ${schedule.zone} during the demo, which it cannot check: run it again`);
  }
  return slots;
}

interface Wall {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const offset = ({ year, month, day, hour, minute, second }: Wall, ms: number) =>
  Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1_000) * 1_000;

function wallClock(zone: string): (ms: number) => Wall {
  const number = "numeric";
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    calendar: "iso8601",
    hourCycle: "h23",
    year: number,
    month: number,
    day: number,
    hour: number,
    minute: number,
    second: number,
  });
  return (ms) =>
    Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)])) as unknown as Wall;
}

/** Splits a cron expression into six fields, the seconds first; five fields get the seconds "0". */
function fields(expression: string): string[] {
  const given = expression.trim().split(/\s+/);
  if (given.length === 5) return ["0", ...given];
  if (given.length === 6) return given;
  throw new RangeError(`not read here: ${expression}`);
}

function matcher(expression: string): (wall: Wall) => boolean {
  const [second, minute, hour, day, month, weekday] = fields(expression) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return (wall) => {
    const last = new Date(Date.UTC(wall.year, wall.month, 0)).getUTCDate();
    const onDay = day === "L" ? wall.day === last : inField(day, wall.day, 1, 31);
    const today = new Date(Date.UTC(wall.year, wall.month - 1, wall.day)).getUTCDay();
    const onWeekday = inField(weekday, today, 0, 7) || (today === 0 && inField(weekday, 7, 0, 7));
    // Cron's rule: if both day fields are restricted, a day that matches either is enough.
    const restricted = !/^[*?]/.test(day) && !/^[*?]/.test(weekday);
    return (
      inField(second, wall.second, 0, 59) &&
      inField(minute, wall.minute, 0, 59) &&
      inField(hour, wall.hour, 0, 23) &&
      inField(month, wall.month, 1, 12) &&
      (restricted ? onDay || onWeekday : onDay && onWeekday)
    );
  };
}

function inField(field: string, value: number, least: number, most: number): boolean {
  return field.split(",").some((part) => {
    const read = /^(?:([*?])|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/.exec(part);
    if (!read) throw new RangeError(`not read here: ${part}`);
    const [, all, from, to, step = "1"] = read;
    const first = all ? least : Number(from);
    const last = all ? most : Number(to ?? from);
    return value >= first && value <= last && (value - first) % Number(step) === 0;
  });
}
