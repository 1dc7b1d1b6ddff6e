import type { Scenario, TaskPlan } from "../scenario.ts";
import type { RunSeen, Seen, Try } from "../seen.ts";

/** A statement of the documentation, with a check of it. */
export interface Rule {
  readonly name: string;
  /** The documentation page that makes the statement. */
  readonly page: string;
  /** @returns a description of the observation that contradicts the page; undefined if there is none */
  check(seen: Seen): string | undefined;
}

/**
 * The longest time, in ms, that counts as "at once": four of the worker's polls of 250 ms, which find changes that no signal reports,
 * plus the time that a reaction may take in this world.
 */
export const promptMsOf = ({ pace }: Seen) => 1_000 + pace.reactMs;
/** Ms after the abort of its signal at which the worker gives up a handler that does not end (flow.md). */
export const givenUpMs = 12_000;

/** Returns the time until which an attempt uses capacity of the worker: its end, or when the worker gives it up. */
export function workerUntil({ end, abort }: Try): number {
  const endMs = end?.atMs ?? Number.POSITIVE_INFINITY;
  return abort ? Math.min(endMs, abort.atMs + givenUpMs) : endMs;
}

/**
 * Returns the time until which an attempt counts for the limits of task, key and group: `workerUntil`, or the loss of its worker if
 * earlier.
 */
export const placeUntil = (one: Try): number => Math.min(workerUntil(one), one.lostMs ?? Number.POSITIVE_INFINITY);

/** Number of the run's claims that were lost with their worker until `beforeMs`. A claim may be lost before its attempt begins. */
export const lossesOf = ({ done }: Seen, runId: number, beforeMs: number) =>
  done.filter(({ lost, fromMs }) => fromMs <= beforeMs && lost?.includes(runId)).length;

/**
 * True if the claim was lost while the run waited inside its worker. The worker still starts the run, like a suspended process that
 * resumes, but the store rejects the attempt's result.
 */
export const isStale = ({ afterLoss }: Try) => afterLoss === true;

export const triesOf = (seen: Seen, runId: number) => seen.tries.filter((one) => one.runId === runId && !isStale(one));
/** True for every run except the second and later parts of a run in parts. */
export const isFirst = ({ shard }: Pick<RunSeen, "shard">) => !shard || shard[0] === 0;
export const runOf = (seen: Seen, runId: number) => seen.runs.find((run) => run.runId === runId);

/** Returns the plans of a task that were in force at some time from `fromMs` to `toMs`. */
export function plansBetween({ tasks }: Seen, task: number, fromMs: number, toMs: number): TaskPlan[] {
  const { plans } = tasks[task] as Seen["tasks"][number];
  return plans
    .filter(({ fromMs: from }, i) => from <= toMs && (plans[i + 1]?.atMs ?? Number.POSITIVE_INFINITY) >= fromMs)
    .map(({ plan }) => plan);
}

/** True if an act of the scenario edits the task's options. */
export const isEdited = ({ acts }: Scenario, task: number) =>
  acts.some((act) => act.op === "edit" && act.task === task);

/** Maximum number of waiting runs of the task; undefined: no maximum. */
export const waitingMost = (overlap: TaskPlan["overlap"]) =>
  typeof overlap === "object" && "queue" in overlap ? overlap.queue : undefined;

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Returns the periods in which the task was paused: from the answer to a pause until the next call of resume. A pause that no
 * resume follows is left out.
 */
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

/** Returns all beginnings and ends of the spans, sorted, each once. */
export function moments(spans: readonly Span[]): number[] {
  return [...new Set(spans.flatMap(({ fromMs, toMs }) => [fromMs, toMs]))].sort((a, b) => a - b);
}

/** Returns the first moment at which more than `most` of the spans overlap; undefined if there is none. */
export function over(spans: readonly Span[], most: number): { atMs: number; count: number } | undefined {
  for (const atMs of moments(spans)) {
    const count = spans.filter(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs).length;
    if (count > most) return { atMs, count };
  }
  return undefined;
}
