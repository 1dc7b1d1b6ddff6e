import type { Checker, History } from "../history.ts";
import { claimsOf, sessionAt } from "./claims.ts";
import { definitionsOf } from "./lost-workers.ts";

/** Within this time in ms, a worker detects that a claim is lost; a suspended process does so after it has resumed. */
const toldWithinMs = 1_500;

/** Checks that a handler ends soon after its claim was lost, unless the handler ignores its signal. */
export const handlersTold: Checker = {
  invariant: "12: a handler that lost its claim is told to stop",
  check(history) {
    const { executions, dump, epochMs, clockErrorMs, slackMs } = history;
    const lost = new Map<number, number>();
    for (const { fence, outcome, ended_ms } of dump.attempt)
      if (outcome === "lost") lost.set(fence as number, (ended_ms as number) - epochMs);
    const unheardMs = gracesUnheard(history);
    const missed = missedAfterAdoption(history);
    for (const { fence, run, node, task, endMs, deaf } of executions) {
      const lostMs = lost.get(fence);
      if (lostMs === undefined || deaf || endMs === null) continue;
      const byGraceMs = lostMs + (unheardMs.get(task) ?? 0) + clockErrorMs;
      const knownMs = Math.min(byGraceMs, missed.get(fence) ?? Number.POSITIVE_INFINITY);
      if (endMs > toldBy(history, node, knownMs) + slackMs)
        return {
          what: `${node} worked on for ${Math.round(endMs - lostMs)} ms after its claim was taken back`,
          run,
          atMs: endMs,
        };
    }
    return undefined;
  },
};

/**
 * Returns the latest time at which a process must have aborted a handler, if it can detect the loss from `knownMs` on. A process that is
 * suspended then may abort the handler after it has resumed.
 */
function toldBy({ happenings, clockErrorMs }: History, node: string, knownMs: number): number {
  let byMs = knownMs + toldWithinMs;
  for (const { atMs, what } of happenings) {
    if (!what.startsWith(`${node} stands still`)) continue;
    const resumed = happenings.find((one) => one.atMs >= atMs && one.what === `${node} goes on`);
    const goesOnMs = Math.min(atMs + standing(what), resumed?.atMs ?? Number.POSITIVE_INFINITY);
    if (atMs <= byMs && goesOnMs >= knownMs - clockErrorMs) byMs = Math.max(byMs, goesOnMs + toldWithinMs);
  }
  return byMs;
}

/**
 * Returns, by fence, since when a process knows that a claim is lost: its new session has taken over the claims of the lost session, and
 * this claim was not among them. From then on, the run has no grace period in the process.
 */
function missedAfterAdoption(history: History): Map<number, number> {
  const { applied, executions, happenings } = history;
  const missed = new Map<number, number>();
  const claims = claimsOf(history);
  const adoptions = applied.filter(({ name }) => name === "claim-adopt");
  for (const [i, { who, values, rows, atMs }] of adoptions.entries()) {
    const [node = ""] = who.split("#");
    const known = happenings.find((one) => one.atMs >= atMs && one.what.startsWith(`${node} info ${tookOver}`));
    if (!known) continue;
    for (const { fence, startMs, endMs } of executions) {
      const claim = claims.get(fence);
      if (!claim || startMs > atMs || (endMs ?? 0) < atMs || missed.has(fence)) continue;
      const isOfLost = sessionAt(claim, adoptions.slice(0, i), atMs) === values[0];
      if (isOfLost && !rows.some((row) => row.fence === fence)) missed.set(fence, known.atMs);
    }
  }
  return missed;
}

/** The worker logs this message after it has compared its runs with the claims in the store. */
const tookOver = "took over the claims of this process's lost session";

const longestMs = 60_000;

/** Returns the length of a pause in ms, from the text of its event. */
const standing = (what: string): number => Number(/ for (\d+) ms/.exec(what)?.[1] ?? longestMs);

/**
 * A process that is cut off receives no edits, and keeps using a task's former grace period. Returns, by task, how much too long this
 * period may be, in ms.
 */
function gracesUnheard(history: History): Map<string, number> {
  const unheard = new Map<string, number>();
  for (const [task, all] of definitionsOf(history)) {
    const graces = all.map(({ graceMs }) => graceMs);
    unheard.set(task, Math.max(...graces) - Math.min(...graces));
  }
  return unheard;
}
