import type { Checker, History, Operation } from "../history.ts";
import { claimsOf } from "./claims.ts";

/** Checks that after an acknowledged pause, removal or cancellation no affected run starts. */
export const stopped: Checker = {
  invariant: "6, 14: what was stopped, and acknowledged, does not start",
  check(history) {
    const { operations, executions } = history;
    const claims = claimsOf(history);
    for (const operation of operations) {
      const { kind, task, outcome, endedMs, answer, run, isOfMany } = operation;
      if (outcome !== "ok" || endedMs === null || isOfMany) continue;
      if (kind === "cancel") {
        const started = executions.find((one) => one.run === run && one.startMs > endedMs);
        if (started && answer === "cancelled")
          return { what: `${operation.id} had cancelled it`, run: started.run, atMs: started.startMs };
        const again = executions.find((one) => one.run === run && (claims.get(one.fence)?.atMs ?? 0) > endedMs);
        if (again)
          return {
            what: `${operation.id} had it stopped, and it was claimed again`,
            run: again.run,
            atMs: again.startMs,
          };
      }
      if (kind !== "pause task" && kind !== "remove task") continue;
      const untilMs = again(operation, history);
      const started = executions.find((one) => one.task === task && one.startMs > endedMs && one.startMs < untilMs);
      if (started)
        return { what: `${operation.id} (${kind}) had stopped ${task}`, run: started.run, task, atMs: started.startMs };
    }
    return undefined;
  },
};

/** Returns the earliest time from which another operation may have let the task run again; 0: one was already under way. */
function again({ task, kind, invokedMs }: Operation, { operations }: History): number {
  const lets = kind === "pause task" ? ["resume task", "save", "remove task"] : ["save", "resume task"];
  const others = operations.filter((other) => other.task === task && lets.includes(other.kind));
  const open = others.some(
    (other) => other.invokedMs <= invokedMs && (other.endedMs ?? Number.POSITIVE_INFINITY) > invokedMs,
  );
  if (open) return 0;
  return Math.min(
    ...others.filter((other) => other.invokedMs > invokedMs).map((other) => other.invokedMs),
    Number.POSITIVE_INFINITY,
  );
}
