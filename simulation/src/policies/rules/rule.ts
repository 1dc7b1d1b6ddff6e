import type { Scenario, TaskPlan } from "../scenario.ts";
import type { RunSeen, Seen, Try } from "../seen.ts";

/** A sentence of the docs, and how it is held to. */
export interface Rule {
  readonly name: string;
  /** The page that says so. */
  readonly page: string;
  /** @returns what was seen that the page does not allow */
  check(seen: Seen): string | undefined;
}

/**
 * Time is virtual and stands still while anything is done, so what is prompt takes none. A worker looks after what it does not hear of
 * every 250 ms; a rule that says "at once" allows four of these.
 */
export const promptMs = 1_000;
/** A handler that ignores its signal is given up on after this (flow.md). */
export const givenUpMs = 12_000;

/** Until when a try keeps its place in the worker: its end, or until it is given up on. */
export function workerUntil({ end, abort }: Try): number {
  const endMs = end?.atMs ?? Number.POSITIVE_INFINITY;
  return abort ? Math.min(endMs, abort.atMs + givenUpMs) : endMs;
}

/** Until when it counts for its task, key and group: one whose worker was taken for dead does no more. */
export const placeUntil = (one: Try): number => Math.min(workerUntil(one), one.lostMs ?? Number.POSITIVE_INFINITY);

/** How many of the run's claims were lost with their worker before that time. A claim may be lost before its try begins. */
export const lossesOf = ({ done }: Seen, runId: number, beforeMs: number) =>
  done.filter(({ lost, fromMs }) => fromMs <= beforeMs && lost?.includes(runId)).length;

/** Its claim was lost while it waited inside its worker, which begins it all the same, as one does that stood still: nothing comes of it. */
export const isStale = ({ afterLoss }: Try) => afterLoss === true;

export const triesOf = (seen: Seen, runId: number) => seen.tries.filter((one) => one.runId === runId && !isStale(one));
/** Not a part of a run of which there is a first one. */
export const isFirst = ({ shard }: Pick<RunSeen, "shard">) => !shard || shard[0] === 0;
export const runOf = (seen: Seen, runId: number) => seen.runs.find((run) => run.runId === runId);

/** The plans of a task that were in force at some time between the two. */
export function plansBetween({ tasks }: Seen, task: number, fromMs: number, toMs: number): TaskPlan[] {
  const { plans } = tasks[task] as Seen["tasks"][number];
  return plans
    .filter(({ atMs }, i) => atMs <= toMs && (plans[i + 1]?.atMs ?? Number.POSITIVE_INFINITY) >= fromMs)
    .map(({ plan }) => plan);
}

/** Of a task whose options nobody changed. */
export const isEdited = ({ acts }: Scenario, task: number) =>
  acts.some((act) => act.op === "edit" && act.task === task);

/** How many runs of the task may wait; undefined: any number. */
export const waitingMost = (overlap: TaskPlan["overlap"]) =>
  typeof overlap === "object" && "queue" in overlap ? overlap.queue : undefined;

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** When the task was paused: from the pause's answer until the resume was asked for. */
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

/** The first moment at which more than `most` of these are there at once. */
export function over(spans: readonly Span[], most: number): { atMs: number; count: number } | undefined {
  for (const atMs of moments(spans)) {
    const count = spans.filter(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs).length;
    if (count > most) return { atMs, count };
  }
  return undefined;
}
