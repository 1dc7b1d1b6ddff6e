import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Checker, History } from "../history.ts";

const boundMs = 1_500;

/**
 * Checks that without faults, and with many slots per worker, a waiting run of a task that allows one run at a time starts within `boundMs`
 * after the earlier run has returned.
 */
export const placesGiven: Checker = {
  invariant: "17: a free place is given at once",
  check(history) {
    const { executions, operations, recoveredMs, epochMs, clockErrorMs, concurrency, slackMs } = history;
    if (concurrency < 20) return undefined;
    for (const task of queued(history)) {
      const own = executions.filter((one) => one.task === task).toSorted((a, b) => a.startMs - b.startMs);
      for (const [i, { run, startMs, dueMs, attempt }] of own.entries()) {
        const before = own[i - 1];
        if (!before || attempt > 1 || before.how !== "returned" || before.endMs === null || before.run === run)
          continue;
        if (before.endMs < recoveredMs + clockErrorMs || dueMs - epochMs > before.endMs) continue;
        const changed = operations.some(
          (one) => one.task === task && one.kind !== "enqueue" && (one.endedMs ?? startMs) > startMs - 30_000,
        );
        if (!changed && startMs - before.endMs > boundMs + clockErrorMs + slackMs)
          return {
            what: `it was due, and started ${Math.round(startMs - before.endMs)} ms after run ${before.run} had made room`,
            run,
            task,
            atMs: startMs,
          };
      }
    }
    return undefined;
  },
};

/** Returns the tasks that allow only one run at a time in all their definitions. */
function queued({ operations }: History): string[] {
  const definitions = new Map<string, TaskDefinition[]>();
  for (const { kind, task, definition } of operations)
    if (kind === "save" && definition) definitions.set(task, [...(definitions.get(task) ?? []), definition]);
  return [...definitions].flatMap(([task, all]) =>
    all.every(({ overlap, limit, rate }) => overlap.policy === "queue" && overlap.limit === 1 && !limit && !rate)
      ? [task]
      : [],
  );
}
