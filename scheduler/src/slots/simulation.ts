/**
 * Lists the slots of all tasks in a time range in order, and the minutes in which slots of several tasks coincide. Everything is computed
 * from definitions, calendars and zone rules, without a store.
 */

import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import type { Calendar } from "../schedule/calendar.ts";
import { compileSchedule, type ScheduleSpec } from "../schedule/schedule.ts";
import { plannedSchedule } from "../schedule/slot-rules.ts";
import { zoneOf } from "../schedule/zone.ts";
import type { ZonesInForce } from "../schedule/zone-rules.ts";
import type { TaskDefinition } from "../task/task.ts";
import { pauseEnd } from "./coming-slots.ts";

export interface SimulatedTask {
  definition: TaskDefinition;
  /** The task's pause. Slots before its end do not fire; a pause without an end is ignored. */
  paused?: { untilMs: number | null } | null | undefined;
  calendar?: Calendar | undefined;
  /** Future nominal times that the ledger has recorded already: see TaskRecord. */
  accountedMs?: readonly number[] | undefined;
  /** The zone rules by which the task is planned: see TaskRecord. */
  zones?: ZonesInForce | undefined;
}

export interface SimulatedFire {
  atMs: number;
  task: string;
  /** The previous slot of the same task; null if there is none in the range. */
  previousMs: number | null;
  /** The reason why a calendar or a blackout skips, moves or delays the slot; empty if none does. */
  rule: string;
  skipped: boolean;
}

/** Local times that do not exist because clocks go forward, and at which a task therefore does not run. */
export interface LostTimes {
  /** The time at which the clocks change. */
  atMs: number;
  task: string;
  /** The first of these local times, such as "02:30". */
  local: string;
  count: number;
}

export interface Collision {
  minuteMs: number;
  fires: number;
  tasks: string[];
}

export interface Simulation {
  /** The first slots, in order of time. */
  fires: SimulatedFire[];
  /** The number of all slots, including those that are not in `fires`. */
  total: number;
  skipped: number;
  lost: LostTimes[];
  /** Minutes in which two or more tasks fire, those with most slots first. */
  collisions: Collision[];
}

/** @throws OPTION_INVALID if there are more slots than limits.simulatedSlots */
export function simulate(tasks: readonly SimulatedTask[], fromMs: number, toMs: number, show: number): Simulation {
  const slots: { atMs: number; task: number; previousMs: number | null }[] = [];
  const schedules = tasks.map(({ definition, calendar, accountedMs, zones }) =>
    plannedSchedule(definition, calendar, accountedMs, zones),
  );
  for (const [task, schedule] of schedules.entries()) {
    let previousMs: number | null = null;
    const firstMs = Math.max(fromMs, pauseEnd(tasks[task] as SimulatedTask));
    for (let atMs = schedule.next(firstMs - 1); atMs !== null && atMs < toMs; atMs = schedule.next(atMs)) {
      slots.push({ atMs, task, previousMs });
      previousMs = atMs;
      if (slots.length > limits.simulatedSlots) throw tooMany(tasks[task] as SimulatedTask);
    }
  }
  slots.sort((a, b) => a.atMs - b.atMs || a.task - b.task);
  const minutes = new Map<number, { fires: number; tasks: Set<number> }>();
  let skipped = 0;
  const fires: SimulatedFire[] = [];
  for (const { atMs, task, previousMs } of slots) {
    const judged = schedules[task]?.judge?.(atMs, atMs);
    const isSkipped = judged?.skipped !== undefined;
    if (isSkipped) skipped++;
    else {
      const minuteMs = Math.floor((judged?.dueMs ?? atMs) / 60_000) * 60_000;
      const minute = minutes.get(minuteMs) ?? { fires: 0, tasks: new Set() };
      minute.fires++;
      minute.tasks.add(task);
      minutes.set(minuteMs, minute);
    }
    if (fires.length >= show) continue;
    const rule = judged?.skipped ?? judged?.note ?? "";
    fires.push({ atMs, task: nameOf(tasks, task), previousMs, rule, skipped: isSkipped });
  }
  const collisions = [...minutes]
    .filter(([, minute]) => minute.tasks.size > 1)
    .sort(([a, one], [b, two]) => two.fires - one.fires || a - b)
    .map(([minuteMs, minute]) => ({
      minuteMs,
      fires: minute.fires,
      tasks: [...minute.tasks].map((task) => nameOf(tasks, task)),
    }));
  const lost = tasks.flatMap(({ definition }) => lostTimes(definition.name, definition.schedule, fromMs, toMs));
  return { fires, total: slots.length, skipped, lost, collisions };
}

const nameOf = (tasks: readonly SimulatedTask[], at: number) => (tasks[at] as SimulatedTask).definition.name;

function lostTimes(task: string, spec: ScheduleSpec, fromMs: number, toMs: number): LostTimes[] {
  if (!("zone" in spec) || spec.gap !== "skip") return [];
  const zone = zoneOf(spec.zone);
  // In UTC every local time exists, so the same schedule in UTC also has the times that the zone skips.
  const named = compileSchedule({ ...spec, zone: "UTC" });
  const lost: LostTimes[] = [];
  for (const span of zone.transitions(fromMs, toMs)) {
    if (span.entered < 0) continue;
    const firstMs = span.from + span.offset - span.entered;
    let count = 0;
    let first: number | null = null;
    for (let at = named.next(firstMs - 1); at !== null && at < firstMs + span.entered; at = named.next(at)) {
      first ??= at;
      count++;
    }
    if (first !== null) lost.push({ atMs: span.from, task, local: new Date(first).toISOString().slice(11, 16), count });
  }
  return lost;
}

const tooMany = ({ definition }: SimulatedTask) =>
  new CarillonError(
    "OPTION_INVALID",
    `there are more than ${limits.simulatedSlots} slots up to task ${definition.name}`,
    {
      hint: "Give a shorter time, or fewer tasks.",
    },
  );
