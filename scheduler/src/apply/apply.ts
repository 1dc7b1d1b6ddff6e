import type { Change } from "../base/change.ts";
import type { Clock } from "../base/clock.ts";
import { type CarillonError, isCarillonError } from "../base/errors.ts";
import { awaitRecall } from "../store/recall.ts";
import type { Store } from "../store/store.ts";
import type { ApplyPlan, PlanStep } from "./apply-plan.ts";

export interface Applied {
  step: PlanStep;
  /** What the task is at now. */
  version: number;
  /** How many waiting runs ended with a removed task. */
  ended?: number;
  /** It was not done, for this reason. */
  error?: CarillonError;
}

/**
 * Carries a plan out, a transaction a task: each is done whole or not at all, whatever becomes of the others. Each is made
 * from the version that the plan saw: a task that someone changed since is refused with TASK_STALE. When the store goes
 * away, the rest is not tried; of the one under way the next plan tells whether it was done.
 * @returns in the plan's order
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
