import { Reach } from "../../access/access.ts";
import type { bundleRoutes } from "../../api/contract/bundles.ts";
import type { Read } from "../../api/contract.ts";
import { applyPlan } from "../../apply/apply.ts";
import { type ApplyPlan, acting, checkBundle, planSteps } from "../../apply/apply-plan.ts";
import { appliedObject, planId, stalePlan, stepObject } from "../../apply/plan-json.ts";
import { type Clock, pause } from "../../base/clock.ts";
import { CarillonError, within } from "../../base/errors.ts";
import type { Store } from "../../store/store.ts";
import { defineTask, type TaskDefinition } from "../../task/task.ts";
import { readGiven } from "../../task/written.ts";
import type { Call, Some } from "../call.ts";
import { changeOf, checkUse } from "./changes.ts";

const refusalsTold = 5;
/** The number of tasks that are processed without yielding to the event loop; they take a few milliseconds. */
const tasksPerTurn = 25;

/**
 * API calls that plan and apply bundles of task definitions for clients without access to the store; see docs/tasks/as-code.md.
 * @param now returns the store's time in epoch ms
 */
export function bundleCalls(store: Store, clock: Clock, now: () => number): Some<keyof typeof bundleRoutes> {
  /**
   * Plans the changes of a bundle. The plan contains only tasks that the caller may view: the bundle's tasks in other namespaces
   * are neither reported nor removed. Planning and applying use this same function, so they agree. Refuses a given task that the
   * caller may not change; `applyBundle` also refuses steps that change other such tasks.
   */
  const planned = async (given: Omit<Read<"applyBundle">, "plan">, { who, reach }: Call): Promise<ApplyPlan> => {
    const { bundle, tasks, prune, adopt, overwriteEdits } = given;
    checkBundle(bundle);
    for (const { task } of tasks) reach.check(task);
    // This process also plans slots, so it must not block its event loop while it processes thousands of tasks.
    let turns = 0;
    const turn = () => (++turns % tasksPerTurn === 0 ? pause(clock, 0) : undefined);
    const definitions = new Map<string, TaskDefinition>();
    for (const [at, { task, options }] of tasks.entries()) {
      if (definitions.has(task))
        throw new CarillonError("TASK_DUPLICATE", `the task ${task} is given twice`, { path: `tasks[${at}].task` });
      definitions.set(
        task,
        within(`tasks[${at}]`, () => defineTask(task, readGiven(options))),
      );
      await turn();
    }
    const present = await store.applied.read([...definitions.keys()], bundle);
    const there = new Map(present.map((task) => [task.name, task.removed ? undefined : task.definition]));
    for (const [name, definition] of definitions) checkUse(definition, there.get(name), { who, reach });
    const sees = who === null ? reach : new Reach(who, "viewer");
    const seen = present.filter(({ name }) => sees.has(name));
    const planning = planSteps([...definitions.values()], seen, { bundle, prune, adopt, overwriteEdits });
    for (;;) {
      const step = planning.next();
      if (step.done) return step.value;
      await turn();
    }
  };

  return {
    async planBundle(given, call) {
      const plan = await planned(given, call);
      const steps = plan.steps.map((step) => ({
        ...stepObject(step),
        definition: (step.definition ?? null) as Record<string, unknown> | null,
      }));
      return { plan: planId(plan), bundle: plan.bundle, steps, left: plan.left };
    },

    async applyBundle({ plan: expected, reason, ...given }, call) {
      const plan = await planned(given, call);
      for (const { task } of acting(plan)) call.reach.check(task);
      const id = planId(plan);
      if (expected !== "*" && expected !== id) throw stalePlan(id, expected);
      const refused = plan.steps.filter(({ kind }) => kind === "refused");
      if (refused.length > 0) {
        const told = refused.slice(0, refusalsTold).map(({ task, why }) => `${task}: ${why}`);
        const more = refused.length > told.length ? `; and ${refused.length - told.length} more` : "";
        throw new CarillonError("PLAN_REFUSED", `${told.join("; ")}${more}`, {
          hint: refused[0]?.hint ?? "",
        });
      }
      const { author, reason: why } = changeOf(call, reason);
      const applied = await applyPlan(store, plan, { author, reason: why, nowMs: now }, clock);
      return { plan: id, bundle: plan.bundle, applied: applied.map(appliedObject) };
    },
  };
}
