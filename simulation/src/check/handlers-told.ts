import type { Checker, History } from "../history.ts";
import { definitionsOf } from "./lost-workers.ts";

/** A worker looks this often, and a process that stood still looks when it goes on. */
const toldWithinMs = 1_500;

/** A handler whose claim is over is told so by its signal: it does not work on as if nothing had been. */
export const handlersTold: Checker = {
  invariant: "12: a handler that lost its claim is told to stop",
  check(history) {
    const { executions, dump, epochMs, clockErrorMs, happenings, slackMs } = history;
    const lost = new Map<number, number>();
    for (const { fence, outcome, ended_ms } of dump.attempt)
      if (outcome === "lost") lost.set(fence as number, (ended_ms as number) - epochMs);
    const unheardMs = gracesUnheard(history);
    for (const { fence, run, node, task, endMs, deaf } of executions) {
      const lostMs = lost.get(fence);
      if (lostMs === undefined || deaf || endMs === null) continue;
      // Whoever stood still meanwhile hears of it when it goes on.
      const stood = happenings.some(
        ({ atMs, what }) =>
          what.startsWith(`${node} stands still`) && atMs <= endMs && atMs + standing(what) >= lostMs - clockErrorMs,
      );
      if (!stood && endMs > lostMs + toldWithinMs + (unheardMs.get(task) ?? 0) + clockErrorMs + slackMs)
        return {
          what: `${node} worked on for ${Math.round(endMs - lostMs)} ms after its claim was taken back`,
          run,
          atMs: endMs,
        };
    }
    return undefined;
  },
};

const longestMs = 60_000;

/** For how long, as it was said. */
const standing = (what: string): number => Number(/ for (\d+) ms/.exec(what)?.[1] ?? longestMs);

/** Who is cut off hears of no edit, and goes by the grace that its task had: by how much that may be too long. */
function gracesUnheard(history: History): Map<string, number> {
  const unheard = new Map<string, number>();
  for (const [task, all] of definitionsOf(history)) {
    const graces = all.map(({ graceMs }) => graceMs);
    unheard.set(task, Math.max(...graces) - Math.min(...graces));
  }
  return unheard;
}
