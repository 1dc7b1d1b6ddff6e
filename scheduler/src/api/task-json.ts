/** Converts tasks to JSON; the command line's --json and the HTTP API return the same form. */

import { compileSchedule } from "../schedule/schedule.ts";
import { nextOf } from "../slots/upcoming-slots.ts";
import { editedParts } from "../task/edits.ts";
import type { TaskStatistics } from "../task/statistics/statistics.ts";
import { type Counters, noCounters, type ReleaseOfTask, type TaskRecord } from "../task/task-record.ts";
import { iso, isoTime } from "./run-json.ts";

export const releaseObject = ({ name, number, isInForce, firstMs, seenMs, nodes }: ReleaseOfTask) => ({
  release: name,
  number,
  inForce: isInForce,
  first: isoTime(firstMs),
  seen: isoTime(seenMs),
  processes: nodes,
});

/** @param schedules the number of the task's named schedules (`TASK:SCHEDULE`): see task/schedule-of.ts */
export function taskObject(record: TaskRecord, counters: Counters | undefined, schedules: number, nowMs: number) {
  const next = nextOf(record, nowMs);
  const { schedule, group } = record.definition;
  return {
    name: record.name,
    version: record.version,
    group,
    of: record.definition.of ?? null,
    schedules,
    schedule,
    route: record.definition.route ?? null,
    labels: record.definition.labels ?? {},
    owner: record.definition.owner ?? null,
    limit: record.definition.limit ?? null,
    rate: record.definition.rate ?? null,
    words: compileSchedule(schedule).words(),
    next: iso(next),
    paused: record.paused && {
      at: isoTime(record.paused.atMs),
      by: record.paused.by,
      why: record.paused.why,
      until: iso(record.paused.untilMs),
    },
    edited: editedParts(record.definition) as string[],
    counters: counters ?? noCounters,
  };
}

export const statisticsObject = ({ periods, timesUntilMs, worse }: TaskStatistics) => ({
  periods: periods.map(({ fromMs, ...figures }) => ({ from: isoTime(fromMs), ...figures })),
  timesUntil: iso(timesUntilMs),
  worse,
});
