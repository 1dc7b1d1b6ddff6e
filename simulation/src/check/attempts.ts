import type { Checker } from "../history.ts";
import { definitionsOf } from "./lost-workers.ts";

/**
 * Checks that one attempt of a run never starts under two fences (claim numbers), and that a run with failed attempts is retried less often
 * than the largest number of attempts in its task's definitions.
 */
export const attempts: Checker = {
  invariant: "1: attempts are numbered, and as many as the policy has",
  check(history) {
    const { executions, dump } = history;
    const numbers = new Map<string, number>();
    for (const { run, attempt, fence, startMs } of executions) {
      const known = numbers.get(`${run} ${attempt}`);
      if (known !== undefined && known !== fence)
        return { what: `attempt ${attempt} was started under the fences ${known} and ${fence}`, run, atMs: startMs };
      numbers.set(`${run} ${attempt}`, fence);
    }
    const definitions = definitionsOf(history);
    const most = new Map<number, number>();
    for (const { id, name } of dump.task)
      most.set(
        id as number,
        Math.max(1, ...(definitions.get(name as string) ?? []).map(({ retry }) => retry.attempts)),
      );
    for (const { id, task_id } of [...dump.run, ...dump.run_history]) {
      const failed = dump.attempt.filter(
        ({ run_id, outcome, error }) =>
          run_id === id && outcome === "failed" && !/SESSION_LOST|STOPPED/.test(String(error)),
      );
      if (failed.length >= (most.get(task_id as number) ?? 1) && failed.length > 0)
        return {
          what: `${failed.length} attempts failed and were tried again, of ${most.get(task_id as number)}`,
          run: id as number,
        };
    }
    return undefined;
  },
};
