import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Checker, Execution } from "../history.ts";

const boundMs = 1_000;

/**
 * Checks that without faults, and with free workers, the run of a slot starts within `boundMs` after its due time, if its task has no
 * limits and was not changed shortly before.
 */
export const startLag: Checker = {
  invariant: "3: what is due starts",
  check({ executions, operations, recoveredMs, epochMs, clockErrorMs, concurrency, slackMs }) {
    if (concurrency < 20) return undefined;
    const limited = new Set(
      operations.flatMap(({ kind, task, definition }) => (kind === "save" && isLimited(definition) ? [task] : [])),
    );
    for (const { run, task, slotMs, dueMs, startStoreMs, attempt, startMs } of executions) {
      if (slotMs === null || attempt > 1 || limited.has(task) || dueMs - epochMs < recoveredMs + clockErrorMs) continue;
      const changed = operations.some(
        (one) => one.task === task && one.invokedMs < startMs && (one.endedMs ?? startMs) > startMs - 10_000,
      );
      const lateMs = startStoreMs - dueMs;
      if (!changed && lateMs > boundMs + clockErrorMs + slackMs && !isFull(executions, concurrency, dueMs - epochMs))
        return { what: `started ${Math.round(lateMs)} ms late with everything in order`, run, task, atMs: startMs };
    }
    return undefined;
  },
};

/** True if a worker had no free slot at that time, for example because many runs were rerun or backfilled. */
function isFull(executions: readonly Execution[], concurrency: number, atMs: number): boolean {
  const under = new Map<string, number>();
  for (const { node, startMs, endMs } of executions)
    if (startMs <= atMs && (endMs ?? Number.POSITIVE_INFINITY) > atMs) under.set(node, (under.get(node) ?? 0) + 1);
  return [...under.values()].some((count) => count >= concurrency);
}

const isLimited = (definition: TaskDefinition | undefined) =>
  definition?.overlap.limit !== null || definition.limit !== undefined || definition.rate !== undefined;
