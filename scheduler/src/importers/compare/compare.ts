/**
 * Compares the next times of each imported task with the times of its source. The task's times come from the text that `carillon apply`
 * would read, computed by the same schedule code that the planner uses. The source's times come from the source's own text, computed by the
 * readers in this folder, which share no code with the importers. A fault in an importer, in the task text or in a schedule that affects
 * these times therefore shows as a difference.
 */
import { nextSlots, type ScheduleSpec } from "../../schedule/schedule.ts";
import { readWritten } from "../../task/written.ts";
import type { ImportedTask } from "../findings.ts";
import { isNearClockChange } from "./clock.ts";
import { readCron } from "./cron-reading.ts";
import { readFugit } from "./fugit-reading.ts";
import { type SourceTimes, UnreadText } from "./source-times.ts";
import { readOnCalendar } from "./systemd-reading.ts";
import { timesOf } from "./walk.ts";

export interface ComparedTime {
  /** The source's fire time in epoch milliseconds; null if the source does not fire at the time that `task` has. */
  source: number | null;
  task: number | null;
  /**
   * `clock change`: the two differ within four hours of a clock change. Schedulers' rules differ there, so it does not count as a
   * difference.
   */
  state: "same" | "differs" | "clock change";
}

export interface Comparison {
  name: string;
  /** The source's schedule in its own notation. */
  said: string;
  zone: string;
  times: ComparedTime[];
  outcome: "same" | "differs" | "not compared";
  /** Says why no times were compared, or which property was compared instead; "" if the times were compared. */
  note: string;
}

interface SourceList {
  times: number[];
  zone: string;
  note: string;
}

export function compareTask({ name, written, told }: ImportedTask, nowMs: number, count: number): Comparison {
  const said = told === undefined ? "" : saidOf(told.times);
  const failed = (note: string): Comparison => ({ name, said, zone: "UTC", times: [], outcome: "not compared", note });
  if (told === undefined) return failed("the source's times follow from a rule that is not known here");
  const spec = readWritten(name, written).schedule;
  const { times } = told;
  if (times.dialect === "delay") {
    const isSame = told.suspended ? spec.type === "manual" : isDelay(spec, times.everyMs);
    const note = "counted from the end of each run: the period is compared";
    return { name, said, zone: "UTC", times: [], outcome: isSame ? "same" : "differs", note };
  }
  const mine = nextSlots(spec, nowMs, count);
  // The reader does not know the source's start and end, so they are applied here; the task's schedule contains its own.
  const afterMs = Math.max(nowMs, (told.fromMs ?? 0) - 1);
  const untilMs = told.untilMs ?? Number.POSITIVE_INFINITY;
  let found: SourceList;
  try {
    found = sourceList(times, afterMs, count, mine);
  } catch (error) {
    if (!(error instanceof UnreadText)) throw error;
    return failed(error.message);
  }
  const theirs = told.suspended ? [] : found.times.filter((ms) => ms < untilMs);
  const rows = aligned(theirs, mine, found.zone, count);
  const outcome = rows.some(({ state }) => state === "differs") ? "differs" : "same";
  const note = told.suspended ? "it stood still there" : found.note;
  return { name, said, zone: found.zone, times: rows, outcome, note };
}

const isDelay = (spec: ScheduleSpec, everyMs: number): boolean =>
  spec.type === "every" && spec.mode === "delay" && spec.everyMs === everyMs;

function saidOf(times: SourceTimes): string {
  switch (times.dialect) {
    case "interval":
    case "delay":
      return `every ${times.everyMs} ms`;
    case "once":
      return `once, at ${new Date(times.atMs).toISOString()}`;
    case "by hand":
      return times.dialect;
    default:
      return times.text;
  }
}

/**
 * Computes the source's next times after `afterMs`.
 * @param mine the task's times; an interval without an anchor is aligned with the first of them
 * @throws UnreadText for a text that no reader understands
 */
function sourceList(times: SourceTimes, afterMs: number, count: number, mine: readonly number[]): SourceList {
  switch (times.dialect) {
    case "interval": {
      const { everyMs, anchorMs } = times;
      const note = anchorMs === undefined ? "the source counts from its own start: the period is compared" : "";
      const first = anchorMs ?? mine[0] ?? 0;
      const next = first + (Math.floor((afterMs - first) / everyMs) + 1) * everyMs;
      return { times: Array.from({ length: count }, (_, k) => next + k * everyMs), zone: "UTC", note };
    }
    case "@every":
      return sourceList({ dialect: "interval", everyMs: goMs(times.text) }, afterMs, count, mine);
    case "delay":
    case "by hand":
      return { times: [], zone: "UTC", note: "" };
    case "once":
      return { times: times.atMs > afterMs ? [times.atMs] : [], zone: "UTC", note: "" };
    case "systemd":
    case "fugit": {
      const { reading, zone = times.zone } = (times.dialect === "fugit" ? readFugit : readOnCalendar)(times.text);
      return { times: timesOf(reading, zone, afterMs, count), zone, note: "" };
    }
    default: {
      const { dialect, text, zone } = times;
      return { times: timesOf(readCron(dialect, text), zone, afterMs, count), zone, note: "" };
    }
  }
}

const goUnitsMs: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** A duration in Go's notation, such as 1h30m, in milliseconds. */
function goMs(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join("") !== text)
    throw new UnreadText(`${JSON.stringify(text)} is no duration of Go`);
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (goUnitsMs[unit as string] as number), 0);
}

/**
 * Merges both lists into rows in order of time. If a list was cut off at `count` times, the rows end at its last time, because later times
 * are missing from that list.
 */
function aligned(theirs: readonly number[], mine: readonly number[], zone: string, count: number): ComparedTime[] {
  const endOf = (list: readonly number[]) => (list.length < count ? Number.POSITIVE_INFINITY : (list.at(-1) as number));
  const endMs = Math.min(endOf(theirs), endOf(mine));
  const [inTheirs, inMine] = [new Set(theirs), new Set(mine)];
  const all = [...new Set([...theirs, ...mine])].filter((ms) => ms <= endMs).sort((a, b) => a - b);
  return all.map((ms) => {
    const [source, task] = [inTheirs.has(ms) ? ms : null, inMine.has(ms) ? ms : null];
    const isSame = source === task;
    const state = isSame ? "same" : zone !== "UTC" && isNearClockChange(ms, zone) ? "clock change" : "differs";
    return { source, task, state };
  });
}
