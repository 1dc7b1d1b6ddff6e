/**
 * Predicts when a large number of tasks fire, minute by minute over the next days, from their definitions as the planner will apply them.
 * The work is limited: tasks that fire at the same times are computed once, and the slots of an interval of at most a minute, without a
 * calendar, blackouts or bounds, are counted without being listed. Other tasks are left out, and counted as left out, if they fire more
 * often than twice a minute on average, or once limits.timelineSlots slots have been examined. Tasks without predictable slots (a fixed
 * delay, a task that runs after others, a manual task, a paused task) are only counted.
 */

import { limits } from "../base/limits.ts";
import { dueOf, jitterMsOf, type Schedule, zoneNameOf } from "../schedule/schedule.ts";
import { zoneOf } from "../schedule/zone.ts";
import type { TaskRecord } from "../task/task-record.ts";
import { type AlikeTasks, firstNames } from "./alike-tasks.ts";
import { pauseEnd } from "./coming-slots.ts";
import { scheduleOf } from "./upcoming-slots.ts";

export const minuteMs = 60_000;

/** Tasks that fire at the same times, and these times. */
export interface Rhythm {
  alike: AlikeTasks;
  /** The minute of each slot, counted from the timeline's beginning, ascending. A minute with several slots is repeated. */
  minutes: number[];
}

/** Tasks that fire at least once in every minute, from `sinceMs` on. */
interface Steady {
  alike: AlikeTasks;
  sinceMs: number;
  everyMs: number;
  anchorMs: number;
}

export interface ClockChange {
  atMs: number;
  zone: string;
  /** The change in minutes; above 0 if clocks go forward. */
  byMinutes: number;
  /** The number of tasks whose schedules are in this zone. */
  tasks: number;
}

export interface Timeline {
  fromMs: number;
  /** The number of runs that become due in each minute. */
  fires: number[];
  /** For each minute, the number of tasks whose runs become due in it. */
  tasks: number[];
  rhythms: Rhythm[];
  steady: Steady[];
  clockChanges: ClockChange[];
  counted: { foretold: number; paused: number; unforeseen: number; left: number };
}

/** The number of slots that are examined before the event loop serves other work. */
const stride = 500;
/** The maximum number of fires per minute, on average, of one schedule, so that no schedule uses up the budget of the others. */
const mostAMinute = 2;

/**
 * Computes the timeline.
 * @param fromMs the start, a whole minute
 * @param breathe returns after the event loop has served other work
 */
export async function foretell(
  all: readonly AlikeTasks[],
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
  const zones = new Map<string, number>();
  let looked = 0;
  for (const alike of all) {
    const { task, count } = alike;
    const { schedule } = task.definition;
    if (task.paused && (task.paused.untilMs ?? toMs) >= toMs) {
      line.counted.paused += count;
      continue;
    }
    const isUnforeseen = schedule.type === "manual" || (schedule.type === "every" && schedule.mode === "delay");
    const planned = isUnforeseen ? null : readable(task);
    if (planned === null) {
      line.counted.unforeseen += count;
      continue;
    }
    const zone = zoneNameOf(schedule);
    if (zone !== null) zones.set(zone, (zones.get(zone) ?? 0) + count);
    const steady = steadyOf(task, planned);
    if (steady) {
      addSteady(line, { ...steady, alike });
      continue;
    }
    const found: number[] = [];
    const most = Math.min(limits.timelineSlots, looked + mostAMinute * minutes);
    let slot = planned.next(Math.max(fromMs - jitterMsOf(schedule), pauseEnd(task)) - 1);
    while (slot !== null && slot < toMs && looked <= most) {
      const judged = judge(task, planned, slot);
      const minute = judged === null ? -1 : Math.floor((judged - fromMs) / minuteMs);
      if (minute >= 0 && minute < minutes) found.push(minute);
      if (++looked % stride === 0) await breathe();
      slot = planned.next(slot);
    }
    if (looked > most) {
      line.counted.left += count;
      continue;
    }
    // The minutes may be out of order, because jitter and calendars can move a later slot before an earlier one.
    found.sort((a, b) => a - b);
    add(line, { alike, minutes: found });
  }
  for (const [zone, count] of zones) line.clockChanges.push(...changesOf(zone, count, fromMs, toMs));
  line.clockChanges.sort((a, b) => a.atMs - b.atMs || b.tasks - a.tasks);
  return line;
}

/** Returns null if this process cannot read the task's definition, for example because a newer version wrote it. */
function readable(task: TaskRecord): Schedule | null {
  try {
    return scheduleOf(task);
  } catch {
    return null; // The leader raises an alarm for such a task.
  }
}

/** Returns when a slot is due, in epoch ms; null if it is skipped. */
function judge({ definition, taskId }: TaskRecord, schedule: Schedule, slotMs: number): number | null {
  const dueMs = dueOf(definition.schedule, taskId, slotMs);
  const judged = schedule.judge?.(slotMs, dueMs);
  if (judged?.skipped !== undefined) return null;
  return judged?.dueMs ?? dueMs;
}

function steadyOf(task: TaskRecord, planned: Schedule): Omit<Steady, "alike"> | null {
  const { schedule } = task.definition;
  if (schedule.type !== "every" || schedule.everyMs > minuteMs || planned.judge) return null;
  // A schedule with bounds does not fire in every minute.
  if (schedule.fromMs !== undefined || schedule.untilMs !== undefined || schedule.times !== undefined) return null;
  return { everyMs: schedule.everyMs, anchorMs: schedule.anchorMs ?? 0, sinceMs: pauseEnd(task) };
}

function addSteady(line: Timeline, steady: Steady): void {
  const { count } = steady.alike;
  line.steady.push(steady);
  line.counted.foretold += count;
  for (let minute = 0; minute < line.fires.length; minute++) {
    const fires = firesOf(steady, line.fromMs + minute * minuteMs, minuteMs);
    (line.fires[minute] as number) += fires * count;
    if (fires > 0) (line.tasks[minute] as number) += count;
  }
}

/** Returns the number of slots in [atMs, atMs + spanMs), not counting those before `sinceMs`, when the task's pause ends. */
export function firesOf({ everyMs, anchorMs, sinceMs }: Steady, atMs: number, spanMs: number): number {
  const fromMs = Math.max(atMs, sinceMs);
  const fires = Math.ceil((atMs + spanMs - anchorMs) / everyMs) - Math.ceil((fromMs - anchorMs) / everyMs);
  return Math.max(0, fires);
}

function add(line: Timeline, rhythm: Rhythm): void {
  const { count } = rhythm.alike;
  const { minutes } = rhythm;
  line.counted.foretold += count;
  if (minutes.length === 0) return;
  line.rhythms.push(rhythm);
  for (const [at, minute] of minutes.entries()) {
    (line.fires[minute] as number) += count;
    if (minutes[at - 1] !== minute) (line.tasks[minute] as number) += count;
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
  name: string;
  fires: number;
  /** The minute of the first slot, in epoch ms. */
  firstMs: number;
}

/**
 * Returns the tasks that fire in [from, to), where both are minutes counted from the timeline's beginning. The tasks are sorted by their
 * first slot.
 * @returns at most `most` tasks, and the number of all of them
 */
export function firingIn(
  line: Timeline,
  { from, to, most }: { from: number; to: number; most: number },
): { firing: FiringTask[]; count: number } {
  const all: (Omit<FiringTask, "name"> & { alike: AlikeTasks })[] = [];
  for (const { alike, minutes } of line.rhythms) {
    const first = lowest(minutes, from);
    const fires = lowest(minutes, to) - first;
    if (fires > 0) all.push({ alike, fires, firstMs: line.fromMs + (minutes[first] as number) * minuteMs });
  }
  const fromMs = line.fromMs + from * minuteMs;
  for (const steady of line.steady) {
    const fires = firesOf(steady, fromMs, (to - from) * minuteMs);
    const { alike, anchorMs, everyMs } = steady;
    const firstMs = anchorMs + Math.ceil((Math.max(fromMs, steady.sinceMs) - anchorMs) / everyMs) * everyMs;
    if (fires > 0) all.push({ alike, fires, firstMs: Math.floor(firstMs / minuteMs) * minuteMs });
  }
  const order = (a: Omit<FiringTask, "name">, b: Omit<FiringTask, "name">) =>
    a.firstMs - b.firstMs || a.fires - b.fires;
  all.sort(order);
  const firing: FiringTask[] = [];
  for (const { alike, ...fires } of all) {
    const last = firing.at(-1);
    // The list ends only where the first slot or the number of slots changes, because tasks equal in both are sorted by name below.
    if (last !== undefined && firing.length >= most && order(last, fires) < 0) break;
    firing.push(...firstNames(alike, most).map((name) => ({ name, ...fires })));
  }
  firing.sort((a, b) => order(a, b) || (a.name < b.name ? -1 : 1));
  return { firing: firing.slice(0, most), count: all.reduce((sum, { alike }) => sum + alike.count, 0) };
}

/** Returns the index of the first value in an ascending list that is at least `least`. */
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
