import type { Checker } from "../history.ts";
import { definitionsOf } from "./lost-workers.ts";

const boundMs = 50;

/**
 * Checks that no attempt whose handler respects its signal runs longer than the longest timeout that its task has had, unless its process
 * was suspended.
 */
export const timeouts: Checker = {
  invariant: "3, 17: a timeout ends an attempt",
  check(history) {
    const definitions = definitionsOf(history);
    for (const { task, run, node, startMs, endMs, deaf } of history.executions) {
      if (deaf || endMs === null) continue;
      const all = definitions.get(task) ?? [];
      if (all.length === 0 || all.some(({ timeoutMs }) => timeoutMs === null)) continue;
      const most = Math.max(...all.map(({ timeoutMs }) => timeoutMs as number));
      const stood = history.happenings.some(
        ({ atMs, what }) => what.startsWith(`${node} stands still`) && atMs > startMs - 60_000 && atMs <= endMs,
      );
      if (!stood && endMs - startMs > most * 1.001 + boundMs + history.slackMs)
        return {
          what: `at work for ${Math.round(endMs - startMs)} ms, with a timeout of ${most} ms`,
          run,
          atMs: endMs,
        };
    }
    return undefined;
  },
};
