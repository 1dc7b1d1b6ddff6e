import type { Checker } from "../history.ts";

/** A worker looks this often, and a process that stood still looks when it goes on. */
const toldWithinMs = 1_500;

/** A handler whose claim is over is told so by its signal: it does not work on as if nothing had been. */
export const handlersTold: Checker = {
  invariant: "12: a handler that lost its claim is told to stop",
  check({ executions, dump, epochMs, clockErrorMs, happenings, slackMs }) {
    const lost = new Map<number, number>();
    for (const { fence, outcome, ended_ms } of dump.attempt)
      if (outcome === "lost") lost.set(fence as number, (ended_ms as number) - epochMs);
    for (const { fence, run, node, startMs, endMs, how, deaf } of executions) {
      const lostMs = lost.get(fence);
      if (lostMs === undefined || deaf || endMs === null || how === "stopped") continue;
      const stood = happenings.some(
        ({ atMs, what }) => what.startsWith(`${node} stands still`) && atMs >= startMs - 60_000 && atMs <= endMs,
      );
      if (!stood && endMs > lostMs + toldWithinMs + clockErrorMs + slackMs)
        return {
          what: `${node} worked on for ${Math.round(endMs - lostMs)} ms after its claim was taken back`,
          run,
          atMs: endMs,
        };
    }
    return undefined;
  },
};
