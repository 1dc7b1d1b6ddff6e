import type { TaskDefinition } from "../../../scheduler/src/task.ts";
import type { Checker } from "../history.ts";

const boundMs = 1_000;

/** With everything in order, and room on every worker, a run starts when it is due. */
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
      if (!changed && lateMs > boundMs + clockErrorMs + slackMs)
        return { what: `started ${Math.round(lateMs)} ms late with everything in order`, run, task, atMs: startMs };
    }
    return undefined;
  },
};

const isLimited = (definition: TaskDefinition | undefined) =>
  definition?.overlap.limit !== null || definition.limit !== undefined || definition.rate !== undefined;
