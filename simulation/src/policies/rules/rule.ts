import type { Scenario, TaskPlan } from "../scenario.ts";
import type { RunSeen, Seen, Try } from "../seen.ts";

/** A statement of the documentation, and its check. */
export interface Rule {
  readonly name: string;
  /** The documentation page with the statement. */
  readonly page: string;
  /** @returns the observation that contradicts the page */
  check(seen: Seen): string | undefined;
}

/**
 * Longest time of a prompt reaction. A worker polls every 250 ms for what no signal reports; a rule that says "at once" allows four of
 * these polls, and the time that consequences take in this world.
 */
export const promptMsOf = ({ pace }: Seen) => 1_000 + pace.reactMs;
/** The worker gives up a handler that ignores its signal after this time (flow.md). */
export const givenUpMs = 12_000;

/** The time until which a try uses the worker's capacity: its end, or the time at which the worker gives it up. */
export function workerUntil({ end, abort }: Try): number {
  const endMs = end?.atMs ?? Number.POSITIVE_INFINITY;
  return abort ? Math.min(endMs, abort.atMs + givenUpMs) : endMs;
}

/** The time until which a try counts for the limits of its task, key and group; it stops counting when its worker is declared dead. */
export const placeUntil = (one: Try): number => Math.min(workerUntil(one), one.lostMs ?? Number.POSITIVE_INFINITY);

/** Number of the run's claims that were lost with their worker before that time. A claim may be lost before its try begins. */
export const lossesOf = ({ done }: Seen, runId: number, beforeMs: number) =>
  done.filter(({ lost, fromMs }) => fromMs <= beforeMs && lost?.includes(runId)).length;

/**
 * True if the claim was lost while the run waited inside its worker. The worker starts the run all the same, like a process that
 * stood still, but the try has no effect.
 */
export const isStale = ({ afterLoss }: Try) => afterLoss === true;

export const triesOf = (seen: Seen, runId: number) => seen.tries.filter((one) => one.runId === runId && !isStale(one));
/** True for all runs but the later parts of a sharded one. */
export const isFirst = ({ shard }: Pick<RunSeen, "shard">) => !shard || shard[0] === 0;
export const runOf = (seen: Seen, runId: number) => seen.runs.find((run) => run.runId === runId);

/** The plans of a task that were in force at some time between the two. */
export function plansBetween({ tasks }: Seen, task: number, fromMs: number, toMs: number): TaskPlan[] {
  const { plans } = tasks[task] as Seen["tasks"][number];
  return plans
    .filter(({ fromMs: from }, i) => from <= toMs && (plans[i + 1]?.atMs ?? Number.POSITIVE_INFINITY) >= fromMs)
    .map(({ plan }) => plan);
}

/** Whether an act edits the task's options. */
export const isEdited = ({ acts }: Scenario, task: number) =>
  acts.some((act) => act.op === "edit" && act.task === task);

/** Maximum number of waiting runs of the task; undefined: no maximum. */
export const waitingMost = (overlap: TaskPlan["overlap"]) =>
  typeof overlap === "object" && "queue" in overlap ? overlap.queue : undefined;

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The pauses of the task: from the pause's answer until the call of the resume. */
export function pausesOf({ done }: Seen, task: number): Span[] {
  const spans: Span[] = [];
  let fromMs: number | undefined;
  for (const { act, ...at } of done) {
    if (act.op === "pause" && act.task === task && !at.refused) fromMs ??= at.toMs;
    if (act.op !== "resume" || act.task !== task || fromMs === undefined) continue;
    spans.push({ fromMs, toMs: at.fromMs });
    fromMs = undefined;
  }
  return spans;
}

export const within = (spans: readonly Span[], ms: number) =>
  spans.some(({ fromMs, toMs }) => fromMs < ms && ms < toMs);

export const endOf = ({ endedMs }: Pick<RunSeen, "endedMs">) => endedMs ?? Number.POSITIVE_INFINITY;

/** Each moment at which something begins or ends. */
export function moments(spans: readonly Span[]): number[] {
  return [...new Set(spans.flatMap(({ fromMs, toMs }) => [fromMs, toMs]))].sort((a, b) => a - b);
}

/** The first moment at which more than `most` of these overlap. */
export function over(spans: readonly Span[], most: number): { atMs: number; count: number } | undefined {
  for (const atMs of moments(spans)) {
    const count = spans.filter(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs).length;
    if (count > most) return { atMs, count };
  }
  return undefined;
}
