/**
 * Predicts the slots of a whole fleet, minute by minute, over the coming days, from the definitions as the planner will apply them. The
 * work is bounded: tasks with the same schedule are computed once, and for a period below a minute slots are counted without being listed.
 * A task is left out, and reported as left out, if a cron makes it fire more often than twice a minute, or once limits.timelineSlots slots
 * were examined. Tasks without predictable slots (a fixed delay, a task after others, a manual one) are only counted.
 */

import { limits } from "../base/limits.ts";
import type { Calendar } from "../schedule/calendar.ts";
import { dueOf, jitterMsOf, type Schedule, zoneNameOf } from "../schedule/schedule.ts";
import { plannedSchedule } from "../schedule/slot-rules.ts";
import { zoneOf } from "../schedule/zone.ts";
import { inZones, ownZones, type ZonesInForce } from "../schedule/zone-rules.ts";
import type { TaskDefinition } from "../task/task.ts";
import { pauseEnd } from "./coming-slots.ts";

export const minuteMs = 60_000;

export interface TimelineTask {
  name: string;
  version: number;
  /** The seed of the jitter: the task's number. */
  seed: number;
  /** `untilMs`: the end of the pause; null: the pause lasts until the task is resumed. */
  paused: { untilMs: number | null } | null;
  definition: TaskDefinition;
  calendar?: Calendar | undefined;
  /** Nominal times to come that are already in the ledger: see TaskRecord. */
  accountedMs?: readonly number[] | undefined;
  /** The zone rules by which the task is planned: see TaskRecord. */
  zones?: ZonesInForce | undefined;
}

/** Tasks that fire at the same times. */
export interface Rhythm {
  tasks: TimelineTask[];
  /** Minutes from the timeline's beginning, ascending; a minute is repeated for each slot in it. */
  minutes: number[];
}

/** A task that fires in every minute from some time on. */
interface Steady {
  task: TimelineTask;
  sinceMs: number;
  everyMs: number;
  anchorMs: number;
}

export interface ClockChange {
  atMs: number;
  zone: string;
  /** Above 0: the clocks go forward. */
  byMinutes: number;
  /** Number of tasks whose schedules use this zone. */
  tasks: number;
}

export interface Timeline {
  fromMs: number;
  /** Number of runs that become due in each minute. */
  fires: number[];
  /** Number of tasks that these runs belong to. */
  tasks: number[];
  rhythms: Rhythm[];
  steady: Steady[];
  clockChanges: ClockChange[];
  counted: { foretold: number; paused: number; unforeseen: number; left: number };
}

/** Number of slots that are examined before other work of the process gets a turn. */
const stride = 500;
/** The most fires per minute, on average, of one schedule, so that a single schedule does not use up the budget of the others. */
const mostAMinute = 2;

/** @param fromMs the start, a whole minute @param breathe lets other work of the process run */
export async function foretell(
  tasks: readonly TimelineTask[],
  fromMs: number,
  minutes: number,
  breathe: () => Promise<void>,
): Promise<Timeline> {
  const toMs = fromMs + minutes * minuteMs;
  const line: Timeline = {
    fromMs,
    fires: Array(minutes).fill(0),
    tasks: Array(minutes).fill(0),
    rhythms: [],
    steady: [],
    clockChanges: [],
    counted: { foretold: 0, paused: 0, unforeseen: 0, left: 0 },
  };
  const alike = new Map<string, TimelineTask[]>();
  const zones = new Map<string, number>();
  for (const task of tasks) {
    const { schedule } = task.definition;
    const isUnforeseen = schedule.type === "manual" || (schedule.type === "every" && schedule.mode === "delay");
    if (task.paused && (task.paused.untilMs ?? toMs) >= toMs) line.counted.paused++;
    else if (isUnforeseen) line.counted.unforeseen++;
    else {
      const key = rhythmKey(task);
      const others = alike.get(key);
      if (others) others.push(task);
      else alike.set(key, [task]);
    }
  }
  let looked = 0;
  for (const group of alike.values()) {
    const [first] = group as [TimelineTask];
    const planned = readable(first);
    if (planned === null) {
      line.counted.unforeseen += group.length;
      continue;
    }
    const { schedule } = first.definition;
    const zone = zoneNameOf(schedule);
    if (zone !== null) zones.set(zone, (zones.get(zone) ?? 0) + group.length);
    const steady = steadyOf(first, planned);
    if (steady) {
      for (const task of group) addSteady(line, { ...steady, task });
      continue;
    }
    const found: number[] = [];
    const most = Math.min(limits.timelineSlots, looked + mostAMinute * minutes);
    let slot = planned.next(Math.max(fromMs - jitterMsOf(first.definition.schedule), pauseEnd(first)) - 1);
    while (slot !== null && slot < toMs && looked <= most) {
      const judged = judge(first, planned, slot);
      const minute = judged === null ? -1 : Math.floor((judged - fromMs) / minuteMs);
      if (minute >= 0 && minute < minutes) found.push(minute);
      if (++looked % stride === 0) await breathe();
      slot = planned.next(slot);
    }
    if (looked > most) {
      line.counted.left += group.length;
      continue;
    }
    // Jitter and calendars may move a later slot before an earlier one.
    found.sort((a, b) => a - b);
    add(line, { tasks: group, minutes: found });
  }
  for (const [zone, count] of zones) line.clockChanges.push(...changesOf(zone, count, fromMs, toMs));
  line.clockChanges.sort((a, b) => a.atMs - b.atMs || b.tasks - a.tasks);
  return line;
}

/** Returns null if this process cannot read the definition; other processes may. */
function readable({ definition, calendar, accountedMs, zones }: TimelineTask): Schedule | null {
  try {
    return plannedSchedule(definition, calendar, accountedMs, zones);
  } catch {
    return null; // the leader raises an alarm for it
  }
}

/** Returns a key that is equal for tasks that fire at the same times; jitter is drawn for each task separately. */
function rhythmKey(task: TimelineTask): string {
  const { schedule, calendar, blackout } = inZones(task.definition, task.zones ?? ownZones);
  const own = jitterMsOf(task.definition.schedule) > 0 ? task.seed : null;
  const version = task.calendar?.version ?? null;
  const accounted = task.accountedMs ?? null;
  return JSON.stringify([schedule, calendar ?? null, version, blackout ?? null, own, accounted, pauseEnd(task)]);
}

/** Returns when the slot is due; null if it will be skipped. */
function judge({ definition, seed }: TimelineTask, schedule: Schedule, slotMs: number): number | null {
  const dueMs = dueOf(definition.schedule, seed, slotMs);
  const judged = schedule.judge?.(slotMs, dueMs);
  if (judged?.skipped !== undefined) return null;
  return judged?.dueMs ?? dueMs;
}

function steadyOf(task: TimelineTask, planned: Schedule): Omit<Steady, "task"> | null {
  const { schedule } = task.definition;
  if (schedule.type !== "every" || schedule.everyMs > minuteMs || planned.judge) return null;
  // A schedule with bounds fires in some minutes and not in others.
  if (schedule.fromMs !== undefined || schedule.untilMs !== undefined || schedule.times !== undefined) return null;
  return { everyMs: schedule.everyMs, anchorMs: schedule.anchorMs ?? 0, sinceMs: pauseEnd(task) };
}

function addSteady(line: Timeline, steady: Steady): void {
  line.steady.push(steady);
  line.counted.foretold++;
  for (let minute = 0; minute < line.fires.length; minute++) {
    const fires = firesOf(steady, line.fromMs + minute * minuteMs, minuteMs);
    (line.fires[minute] as number) += fires;
    if (fires > 0) (line.tasks[minute] as number)++;
  }
}

/** The number of slots in [atMs, atMs + spanMs). */
function firesOf({ everyMs, anchorMs, sinceMs }: Steady, atMs: number, spanMs: number): number {
  const fromMs = Math.max(atMs, sinceMs);
  const fires = Math.ceil((atMs + spanMs - anchorMs) / everyMs) - Math.ceil((fromMs - anchorMs) / everyMs);
  return Math.max(0, fires);
}

function add(line: Timeline, rhythm: Rhythm): void {
  const { tasks, minutes } = rhythm;
  line.counted.foretold += tasks.length;
  if (minutes.length === 0) return;
  line.rhythms.push(rhythm);
  for (const [at, minute] of minutes.entries()) {
    (line.fires[minute] as number) += tasks.length;
    if (minutes[at - 1] !== minute) (line.tasks[minute] as number) += tasks.length;
  }
}

const changesOf = (zone: string, tasks: number, fromMs: number, toMs: number): ClockChange[] =>
  Array.from(zoneOf(zone).transitions(fromMs, toMs), ({ from, entered }) => ({
    atMs: from,
    zone,
    byMinutes: entered / minuteMs,
    tasks,
  }));

export interface FiringTask {
  task: TimelineTask;
  fires: number;
  /** The minute of the first fire. */
  firstMs: number;
}

/** Tasks that fire in [from, to), in minutes from the timeline's beginning; sorted by their first slot. */
export function firingIn(line: Timeline, from: number, to: number): FiringTask[] {
  const firing: FiringTask[] = [];
  for (const { tasks, minutes } of line.rhythms) {
    const first = lowest(minutes, from);
    const fires = lowest(minutes, to) - first;
    if (fires <= 0) continue;
    const firstMs = line.fromMs + (minutes[first] as number) * minuteMs;
    for (const task of tasks) firing.push({ task, fires, firstMs });
  }
  const fromMs = line.fromMs + from * minuteMs;
  for (const steady of line.steady) {
    const fires = firesOf(steady, fromMs, (to - from) * minuteMs);
    const { anchorMs, everyMs } = steady;
    const firstMs = anchorMs + Math.ceil((Math.max(fromMs, steady.sinceMs) - anchorMs) / everyMs) * everyMs;
    if (fires > 0) firing.push({ task: steady.task, fires, firstMs: Math.floor(firstMs / minuteMs) * minuteMs });
  }
  return firing.sort((a, b) => a.firstMs - b.firstMs || a.fires - b.fires || (a.task.name < b.task.name ? -1 : 1));
}

/** The first index of an ascending list whose value is at least `least`. */
function lowest(values: readonly number[], least: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] as number) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
