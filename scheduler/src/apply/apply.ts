import type { Change } from "../base/change.ts";
import type { Clock } from "../base/clock.ts";
import { type CarillonError, isCarillonError } from "../base/errors.ts";
import { awaitRecall } from "../store/recall.ts";
import type { Store } from "../store/store.ts";
import type { ApplyPlan, PlanStep } from "./apply-plan.ts";

export interface Applied {
  step: PlanStep;
  /** The version that the task has after the step. */
  version: number;
  /** How many waiting runs ended with a removed task. */
  ended?: number;
  /** The reason why the step failed. */
  error?: CarillonError;
}

/**
 * Executes a plan, with one transaction per task: each step is done completely or not at all, whatever happens to the others. Each step
 * requires the version that the plan saw: a task that was changed since is refused with TASK_STALE. If the store becomes unreachable, the
 * remaining steps are skipped; the next plan shows whether the interrupted step was done.
 * @returns one result per step, in the plan's order
 */
export async function applyPlan(
  { tasks, runs }: Pick<Store, "tasks" | "runs">,
  plan: ApplyPlan,
  { author, reason, nowMs }: Omit<Change, "nowMs" | "bundle"> & { nowMs: () => number },
  clock: Clock,
): Promise<Applied[]> {
  const results: Applied[] = [];
  let away: CarillonError | undefined;
  for (const step of plan.steps) {
    if (step.kind === "none" || step.kind === "refused") continue;
    if (away) {
      results.push({ step, version: step.version, error: away });
      continue;
    }
    const change = { author, reason, nowMs: nowMs() };
    try {
      if (step.kind === "remove") {
        const { recalled, ended } = await tasks.remove(step.task, change, step.version);
        await awaitRecall(runs, clock, recalled);
        results.push({ step, version: step.version, ended });
      } else if (step.definition) {
        const { record } = await tasks.save(step.definition, step.version, { ...change, bundle: plan.bundle });
        results.push({ step, version: record.version });
      }
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      if (error.code.startsWith("STORE_")) away = error;
      results.push({ step, version: step.version, error });
    }
  }
  return results;
}
