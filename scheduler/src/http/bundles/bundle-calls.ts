import { Reach } from "../../access/access.ts";
import type { bundleRoutes } from "../../api/contract/bundles.ts";
import type { Read } from "../../api/contract.ts";
import { applyWhole } from "../../apply/apply-items.ts";
import { acting, checkBundle, planSteps } from "../../apply/apply-plan.ts";
import { type ApplyPlan, itemWords } from "../../apply/plan-items.ts";
import {
  appliedItemObject,
  appliedObject,
  itemStepObject,
  planId,
  stalePlan,
  stepObject,
} from "../../apply/plan-json.ts";
import { type Clock, pause } from "../../base/clock.ts";
import { CarillonError, within } from "../../base/errors.ts";
import type { AlarmSettings } from "../../settings/alarms/alarms.ts";
import type { Store } from "../../store/store.ts";
import { defineTask, type TaskDefinition } from "../../task/task.ts";
import { readGiven } from "../../task/written.ts";
import type { Call, Some } from "../call.ts";
import { changeOf, checkUse } from "../calls/changes.ts";
import { checkItemSteps, givenItems, plannedItems, readable } from "./bundle-items.ts";

const refusalsTold = 5;
/** After this number of tasks the loop yields to the event loop. */
const tasksPerTurn = 25;

/**
 * API calls that plan and apply bundles of task definitions for clients without access to the store; see docs/tasks/as-code.md.
 * @param now returns the store's time in epoch ms @param onHookChanged called after hooks may have changed, before the request is answered
 */
export function bundleCalls(
  store: Store,
  { clock, now, alarms: settings }: { clock: Clock; now: () => number; alarms: AlarmSettings | null },
  onHookChanged: () => void,
): Some<keyof typeof bundleRoutes> {
  /**
   * Plans the changes of a bundle. Tasks that the caller may not view are left out of the plan, so they are neither reported nor removed.
   * @throws ACCESS_DENIED if `tasks` names a task in a namespace where the caller lacks the role that the route requires
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
    const options = { bundle, prune, adopt, overwriteEdits };
    const { given: readableItems, unreadItems } = readable(givenItems(given, settings), who);
    const items = await plannedItems(store, readableItems, options, { who, reach });
    const planning = planSteps([...definitions.values()], seen, options);
    for (;;) {
      const step = planning.next();
      if (step.done) return { ...step.value, ...items, unreadItems };
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
      const { bundle, left, leftItems, unreadItems = [] } = plan;
      const items = plan.items.map((step) => ({
        ...itemStepObject(step),
        content: step.content ?? null,
        given: step.given ?? null,
      }));
      return { plan: planId(plan), bundle, steps, left, itemSteps: items, leftItems, unreadItems };
    },

    async applyBundle({ plan: expected, reason, ...given }, call) {
      const plan = await planned(given, call);
      for (const { task } of acting(plan.steps)) call.reach.check(task);
      await checkItemSteps(store, plan, call);
      const id = planId(plan);
      if (expected !== "*" && expected !== id) throw stalePlan(id, expected);
      const refused = [
        ...plan.steps.map(({ task: name, ...step }) => ({ ...step, name })),
        ...plan.items.map((step) => ({ ...step, name: `${itemWords[step.item]} ${step.name}` })),
      ].filter(({ kind }) => kind === "refused");
      if (refused.length > 0) {
        const told = refused.slice(0, refusalsTold).map(({ name, why }) => `${name}: ${why}`);
        const more = refused.length > told.length ? `; and ${refused.length - told.length} more` : "";
        throw new CarillonError("PLAN_REFUSED", `${told.join("; ")}${more}`, {
          hint: refused[0]?.hint ?? "",
        });
      }
      const { author, reason: why } = changeOf(call, reason);
      const by = { author, reason: why, nowMs: now };
      const { tasks: applied, items } = await applyWhole(store, plan, by, clock);
      if (items.length > 0) onHookChanged();
      return {
        plan: id,
        bundle: plan.bundle,
        applied: applied.map(appliedObject),
        appliedItems: items.map(appliedItemObject),
      };
    },
  };
}
