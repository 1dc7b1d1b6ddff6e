import type { BackfillRange, OperationRecord } from "../run/operations.ts";
import { iso, isoTime } from "./run-json.ts";

/** Converts an operation to JSON; the command line's --json and the HTTP API return the same form. */
export function operationObject(operation: OperationRecord) {
  const { operationId, createdMs, startedMs, endedMs, filter, range, pauseUntilMs, ...rest } = operation;
  const { sinceMs, untilMs, runId, ...named } = filter;
  return {
    operation: operationId,
    ...rest,
    filter: {
      ...named,
      ...(runId === undefined ? {} : { run: runId }),
      ...(sinceMs === undefined ? {} : { since: isoTime(sinceMs) }),
      ...(untilMs === undefined ? {} : { until: isoTime(untilMs) }),
    },
    ...(range === undefined ? {} : { range: rangeObject(range) }),
    ...(pauseUntilMs === undefined ? {} : { pauseUntil: isoTime(pauseUntilMs) }),
    created: isoTime(createdMs),
    started: iso(startedMs),
    ended: iso(endedMs),
  };
}

const rangeObject = ({ fromMs, toMs, ...rest }: BackfillRange) => ({
  ...rest,
  from: isoTime(fromMs),
  to: isoTime(toMs),
});

/** Converts a group of failed runs: its times, and the number of its last run. */
export const failureGroupObject = <Group extends { firstMs: number; lastMs: number; lastRunId: number }>({
  firstMs,
  lastMs,
  lastRunId,
  ...group
}: Group) => ({ ...group, first: isoTime(firstMs), last: isoTime(lastMs), lastRun: lastRunId });
