import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Checker, Execution, History } from "../history.ts";

/**
 * Checks that a started run of a lost worker is taken back only after its grace period, and that it does not start again if none of its
 * task's definitions allows that (`onWorkerLost: "retry"`).
 */
export const lostWorkers: Checker = {
  invariant: "12, 1: a lost worker's runs are taken back when and as their task says",
  check(history) {
    const { dump, executions, clockErrorMs } = history;
    const definitions = definitionsOf(history);
    const names = new Map(dump.task.map(({ id, name }) => [id as number, name as string]));
    const runs = new Map([...dump.run, ...dump.run_history].map((row) => [row.id as number, row]));
    const sessions = new Map(dump.session.map((row) => [row.id as number, row]));
    for (const row of dump.attempt) {
      if (row.outcome !== "lost" || row.started_ms === null) continue;
      const run = row.run_id as number;
      const task = names.get(runs.get(run)?.task_id as number) ?? "";
      const graceMs = Math.min(...(definitions.get(task) ?? []).map((one) => one.graceMs));
      const endedMs = sessions.get(row.session_id as number)?.ended_ms as number;
      const afterMs = (row.ended_ms as number) - endedMs;
      if (afterMs < graceMs - 2 * clockErrorMs)
        return {
          what: `fence ${row.fence} was taken back ${afterMs} ms after its session, with a grace of ${graceMs} ms`,
          run,
        };
    }
    for (const [task, all] of definitions) {
      const hows = new Set(all.map(({ onWorkerLost }) => onWorkerLost));
      if (hows.size !== 1 || hows.has("retry")) continue;
      for (const again of executions.filter((one) => one.task === task)) {
        const before = executions.find((one) => one.run === again.run && one.fence < again.fence && isLost(one));
        if (before)
          return {
            what: `it began again after ${before.node} was lost, and its task says ${[...hows]}`,
            run: again.run,
            atMs: again.startMs,
          };
      }
    }
    return undefined;
  },
};

/**
 * True if the process was killed while the handler ran, or if the handler was aborted because the session was lost. A handler that ignored
 * its timeout does not count: its worker has abandoned it, and it may still run at the end.
 */
const isLost = ({ how, stoppedWhy, timedOut }: Execution): boolean =>
  (how === null && !timedOut) || stoppedWhy === "SESSION_LOST";

/** Returns all definitions that each task ever had, by its name. */
export function definitionsOf({ operations }: History): Map<string, TaskDefinition[]> {
  const definitions = new Map<string, TaskDefinition[]>();
  for (const { kind, task, definition } of operations)
    if (kind === "save" && definition) definitions.set(task, [...(definitions.get(task) ?? []), definition]);
  return definitions;
}
