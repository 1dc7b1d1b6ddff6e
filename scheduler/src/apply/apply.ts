import type { Change } from "../base/change.ts";
import type { Clock } from "../base/clock.ts";
import { type CarillonError, isCarillonError } from "../base/errors.ts";
import { awaitRecall } from "../store/recall.ts";
import type { Store } from "../store/store.ts";
import type { PlanStep, TaskPlan } from "./apply-plan.ts";

export interface Applied {
  step: PlanStep;
  /** The task's version after the step. */
  version: number;
  /** For a removed task: the number of waiting runs that ended with it. */
  ended?: number;
  /** Set if the step failed. */
  error?: CarillonError;
}

/**
 * Executes a plan with one transaction per task: each step is done completely or not at all, independent of the other steps.
 * Each step requires the version that the plan saw: if the task was changed since, the step fails with TASK_STALE. If the store
 * becomes unreachable, the remaining steps fail without being tried; the next plan shows whether the interrupted step was done.
 * @returns one result per step, in the plan's order, without those that are unchanged or refused
 */
export async function applyPlan(
  { tasks, runs }: Pick<Store, "tasks" | "runs">,
  plan: TaskPlan,
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
