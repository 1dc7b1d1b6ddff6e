import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Checker, Execution, History } from "../history.ts";

/**
 * Checks, for tasks whose every version has a limit, that the number of concurrent executions with a valid claim never exceeds the highest
 * of these limits.
 */
export const limitsHeld: Checker = {
  invariant: "13: never more at once than the limit",
  check(history) {
    const claimEnd = claimEnds(history);
    for (const [task, limit] of limitsOf(history)) {
      const ends: { run: number; endMs: number }[] = [];
      const own = history.executions.filter((execution) => execution.task === task);
      for (const execution of own.toSorted((a, b) => a.startMs - b.startMs)) {
        const alive = ends.filter(({ endMs, run }) => endMs > execution.startMs && run !== execution.run);
        if (alive.length >= limit)
          return {
            what: `beside run${alive.map(({ run }) => ` ${run}`).join()}, with a limit of ${limit}`,
            run: execution.run,
            task,
            atMs: execution.startMs,
          };
        ends.push({
          run: execution.run,
          endMs: Math.min(endOf(execution, history), claimEnd.get(execution.fence) ?? Infinity),
        });
      }
    }
    return undefined;
  },
};

function limitsOf({ operations }: History): Map<string, number> {
  const limits = new Map<string, number | null>();
  for (const { kind, task, definition } of operations) {
    if (kind !== "save") continue;
    const { limit } = (definition as TaskDefinition).overlap;
    const known = limits.get(task);
    limits.set(task, limit === null || known === null ? null : Math.max(limit, known ?? 0));
  }
  return new Map([...limits].filter((entry): entry is [string, number] => entry[1] !== null));
}

/** Returns when an execution ended; a handler that has not returned ends with its process. */
function endOf({ endMs, node, startMs }: Execution, { happenings, endMs: overMs }: History): number {
  if (endMs !== null) return endMs;
  const killed = happenings.find(
    ({ atMs, what }) => atMs >= startMs && (what.startsWith(`${node} is killed`) || what.startsWith(`${node} begins`)),
  );
  return killed?.atMs ?? overMs;
}

/** Returns, by fence, the earliest time at which the claim may have ended in the store, given the largest error of the clocks. */
function claimEnds({ dump, epochMs, clockErrorMs }: History): Map<number, number> {
  const ends = new Map<number, number>();
  for (const { fence, ended_ms } of [...dump.attempt, ...dump.run_history])
    if (fence !== null) ends.set(fence as number, (ended_ms as number) - epochMs - 2 * clockErrorMs);
  return ends;
}
