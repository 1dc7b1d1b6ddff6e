import type { HookContent } from "../access/hooks/hook.ts";
import type { RuleContent } from "../alarms/stored-rules.ts";
import type { Change } from "../base/change.ts";
import type { Clock } from "../base/clock.ts";
import { type CarillonError, isCarillonError } from "../base/errors.ts";
import type { Store } from "../store/store.ts";
import { type AppliedItem, type ItemKind, itemKinds } from "../task/applied-store.ts";
import { type Applied, applyPlan } from "./apply.ts";
import { type ApplyPlan, type GivenItem, type ItemPlan, type ItemStep, planItems } from "./plan-items.ts";

export interface AppliedStep {
  step: ItemStep;
  /** The version after the step. */
  version: number;
  /** Set if the step failed. */
  error?: CarillonError;
}

type By = Pick<Change, "author" | "reason"> & { nowMs: () => number };
type Stores = Pick<Store, "alarms" | "hooks">;

/** The given items of each kind; a kind that is left out is neither planned nor pruned. */
export type GivenItems = Partial<Record<ItemKind, readonly GivenItem[]>>;

/** Reads the stored items and plans the given kinds. @param sees returns whether the caller may see an item of the bundle */
export async function itemPlanOf(
  { applied }: Pick<Store, "applied">,
  given: GivenItems,
  options: Parameters<typeof planItems>[3],
  sees: (item: ItemKind, one: AppliedItem) => boolean = () => true,
): Promise<ItemPlan> {
  const plan: ItemPlan = { items: [], leftItems: [] };
  for (const item of itemKinds) {
    const wanted = given[item];
    if (!wanted) continue;
    const names = wanted.map(({ name }) => name);
    const present = (await applied.items(item, names, options.bundle)).filter((one) => sees(item, one));
    const { items, leftItems } = planItems(item, wanted, present, options);
    plan.items.push(...items);
    plan.leftItems.push(...leftItems);
  }
  return plan;
}

/** Executes the whole plan: its tasks, then its alarm rules and hooks. */
export async function applyWhole(
  store: Stores & Pick<Store, "tasks" | "runs">,
  plan: ApplyPlan,
  by: By,
  clock: Clock,
): Promise<{ tasks: Applied[]; items: AppliedStep[] }> {
  const tasks = await applyPlan(store, plan, by, clock);
  const away = tasks.find(({ error }) => error?.code.startsWith("STORE_"))?.error;
  return { tasks, items: await applyItems(store, plan, by, away) };
}

/**
 * Executes the steps of a plan that concern alarm rules and hooks, as `applyPlan` does for tasks. It runs after the steps of tasks.
 * @param away the error with which the store became unreachable during the steps of tasks; then nothing is tried
 */
async function applyItems(
  stores: Stores,
  { bundle, items }: Pick<ApplyPlan, "bundle" | "items">,
  { author, reason, nowMs }: By,
  away?: CarillonError,
): Promise<AppliedStep[]> {
  const results: AppliedStep[] = [];
  let unreachable = away;
  for (const step of items) {
    if (step.kind === "none" || step.kind === "refused") continue;
    if (unreachable) {
      results.push({ step, version: step.version, error: unreachable });
      continue;
    }
    try {
      results.push({ step, version: await execute(stores, step, { author, reason, nowMs: nowMs() }, bundle) });
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      if (error.code.startsWith("STORE_")) unreachable = error;
      results.push({ step, version: step.version, error });
    }
  }
  return results;
}

/** @returns the version after the step */
async function execute(
  { alarms, hooks }: Stores,
  { item, kind, name, version, content, given }: ItemStep,
  by: Change,
  bundle: string,
): Promise<number> {
  if (kind === "remove" || content === undefined) {
    await (item === "alarm" ? alarms.removeRule(name, by, version) : hooks.remove(name, by, version));
    return version;
  }
  const change = { ...by, bundle, ...(given ? { applied: given } : {}) };
  if (item === "hook") return (await hooks.set(name, content as unknown as HookContent, change, version)).version;
  const rule = content as unknown as RuleContent;
  const stored =
    kind === "create"
      ? await alarms.createRule(name, rule, change)
      : await alarms.replaceRule(name, rule, change, version);
  return stored.version;
}
