/** Converts runs to JSON; the command line's --json and the HTTP API return the same form. */

import { writtenOverrides } from "../run/enqueue-options.ts";
import type { LateResult, Relative } from "../run/flow.ts";
import { readyMsOf } from "../run/handling/lateness.ts";
import type { AttemptRecord, RunRecord } from "../run/run-record.ts";
import type { ConsumerRecord, FailedDelivery } from "../store/event-store.ts";

export const iso = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));
export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** Converts a run to JSON without its large fields. Times are in ISO 8601, durations in ms. */
export function runSummaryObject(run: RunRecord) {
  return {
    run: run.runId,
    task: run.task,
    version: run.version,
    state: run.state,
    source: run.source,
    priority: run.priority,
    key: run.key,
    slot: iso(run.slotMs),
    due: isoTime(run.dueMs),
    created: isoTime(run.createdMs),
    claimed: iso(run.claimedMs),
    started: iso(run.startedMs),
    ended: iso(run.endedMs),
    lateMs: run.startedMs === null ? null : run.startedMs - run.dueMs,
    ownWaitMs: run.startedMs === null ? null : readyMsOf(run) - run.dueMs,
    tookMs: run.startedMs === null || run.endedMs === null ? null : run.endedMs - run.startedMs,
    attempt: run.attempt,
    fence: run.fence,
    node: run.node,
    release: run.release ?? null,
    addressee: run.addressee ?? null,
    limitKey: run.limitKey ?? null,
    overrides: run.overrides ? writtenOverrides(run.overrides) : null,
    expires: iso(run.expiresMs ?? null),
    labels: run.labels ?? {},
    shard: run.shard ? { index: run.shard[0], total: run.shard[1] } : null,
    error: run.error,
  };
}

/** As `runSummaryObject`, with the fields that can be large: payload, progress, result and error. */
export function runObject(run: RunRecord) {
  const { error, ...rest } = runSummaryObject(run);
  return { ...rest, payload: run.payload, progress: run.progress, result: run.result, error };
}

export function attemptObject(attempt: AttemptRecord) {
  const { claimedMs, startedMs, endedMs, ...rest } = attempt;
  return { ...rest, claimed: iso(claimedMs), started: iso(startedMs), ended: iso(endedMs) };
}

export const relativeObject = ({ runId, task, state, relation }: Relative) => ({ run: runId, task, state, relation });
export const lateObject = ({ atMs, ...late }: LateResult) => ({ at: new Date(atMs).toISOString(), ...late });

/** Returns a named consumer of events as the API shows it. */
export const consumerObject = ({ name, placeMs, untilMs, failing }: ConsumerRecord) => ({
  name,
  place: iso(placeMs),
  until: isoTime(untilMs),
  failing: failing && deliveryObject(failing),
});

const deliveryObject = ({ type, runId, task, eventMs, attempt, error, atMs, againMs }: FailedDelivery) => ({
  type,
  run: runId === 0 ? null : runId,
  task,
  time: iso(eventMs ?? null),
  attempt,
  error,
  at: isoTime(atMs),
  again: isoTime(againMs),
});
