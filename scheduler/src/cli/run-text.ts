import { outcomes } from "../run.ts";
import type { AttemptRecord, RunRecord } from "../store.ts";
import { errorWords, type RunEnd } from "./event-lines.ts";
import type { Paint, Style } from "./style.ts";

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());

/** A run as JSON for programs: times in ISO 8601, spans in milliseconds. */
export function runObject(run: RunRecord) {
  return {
    run: run.runId,
    task: run.task,
    version: run.version,
    state: run.state,
    source: run.source,
    priority: run.priority,
    key: run.key,
    slot: iso(run.slotMs),
    due: iso(run.dueMs),
    created: iso(run.createdMs),
    claimed: iso(run.claimedMs),
    started: iso(run.startedMs),
    ended: iso(run.endedMs),
    lateMs: run.startedMs === null ? null : run.startedMs - run.dueMs,
    tookMs: run.startedMs === null || run.endedMs === null ? null : run.endedMs - run.startedMs,
    attempt: run.attempt,
    fence: run.fence,
    node: run.node,
    addressee: run.addressee ?? null,
    limitKey: run.limitKey ?? null,
    shard: run.shard ? { index: run.shard[0], total: run.shard[1] } : null,
    payload: run.payload,
    progress: run.progress,
    result: run.result,
    error: run.error,
  };
}

export function attemptObject(attempt: AttemptRecord) {
  const { claimedMs, startedMs, endedMs, ...rest } = attempt;
  return { ...rest, claimed: iso(claimedMs), started: iso(startedMs), ended: iso(endedMs) };
}

const marks: Record<RunRecord["state"], string> = {
  held: "…",
  paused: "‖",
  ready: "…",
  claimed: "▶",
  undecided: "?",
  succeeded: "✓",
  failed: "✗",
  cancelled: "⊘",
  skipped: "↷",
};

export const stateText = (state: RunRecord["state"]) => `${marks[state]} ${state}`;

export function statePaint(state: RunRecord["state"], style: Style): Paint {
  switch (state) {
    case "succeeded":
      return style.good;
    case "failed":
      return style.bad;
    case "cancelled":
    case "undecided":
      return style.warning;
    case "claimed":
      return style.accent;
    default:
      return style.dim;
  }
}

/** An ended run's line; undefined while it lives. */
export function endOfRun(run: RunRecord): RunEnd | undefined {
  const outcome = outcomes.find((end) => end === run.state);
  return outcome && { ...run, outcome, error: errorWords(run.error) };
}
