import { checkPolicy, type Role } from "../../access/access.ts";
import type { RuleContent } from "../../alarms/stored-rules.ts";
import type { bundleRoutes } from "../../api/contract/bundles.ts";
import type { Read } from "../../api/contract.ts";
import { type GivenItems, itemPlanOf } from "../../apply/apply-items.ts";
import type { PlanOptions } from "../../apply/apply-plan.ts";
import {
  checkItem,
  checkItemName,
  type GivenItem,
  type ItemContent,
  type ItemPlan,
  itemWords,
} from "../../apply/plan-items.ts";
import { itemParts } from "../../apply/read.ts";
import { CarillonError, within } from "../../base/errors.ts";
import type { AlarmSettings } from "../../settings/alarms/alarms.ts";
import type { Store } from "../../store/store.ts";
import { type ItemKind, itemKinds } from "../../task/applied-store.ts";
import type { Call } from "../call.ts";
import { checkChannels, checkRuleReach } from "../calls/alarm-calls.ts";

type Given = Pick<Read<Extract<keyof typeof bundleRoutes, "planBundle">>, "alarms" | "hooks">;

/** The namespaces in which the caller has the role for alarm rules or hooks. A token also needs their scope. @throws ACCESS_DENIED */
const reachOf = (item: ItemKind, who: NonNullable<Call["who"]>, policy: Role) =>
  checkPolicy(who, { policy, touches: "listed", noun: itemParts[item], writes: policy === "admin" });

/**
 * Leaves out empty lists of kinds that the caller's token is not for: a client that prunes sends them, also if its files only have tasks.
 * @returns what is left, and the kinds that were left out
 */
export function readable(given: GivenItems, who: Call["who"]): { given: GivenItems; unreadItems: ItemKind[] } {
  const scopes = who?.scopes ?? null;
  const unreadItems = itemKinds.filter(
    (item) => given[item]?.length === 0 && scopes !== null && !scopes.includes(`${itemParts[item]}:read`),
  );
  const left = itemKinds.filter((item) => given[item] && !unreadItems.includes(item));
  return { given: Object.fromEntries(left.map((item) => [item, given[item]])), unreadItems };
}

/** Checks the given alarm rules and hooks. @throws OPTION_INVALID, DURATION_INVALID, ZONE_UNKNOWN with the path in the request */
export function givenItems({ alarms, hooks }: Given, settings: AlarmSettings | null): GivenItems {
  const checked = (item: ItemKind, given: NonNullable<Given["alarms"] | Given["hooks"]>): GivenItem[] => {
    const named = new Set<string>();
    return given.map(({ name, content }, at) => {
      const path = `${itemParts[item]}[${at}]`;
      if (named.has(name))
        throw new CarillonError("OPTION_INVALID", `the ${itemWords[item]} ${name} is given twice`, {
          path: `${path}.name`,
          hint: "Leave out one of the two.",
        });
      named.add(name);
      within(`${path}.name`, () => checkItemName(item, name));
      return within(`${path}.content`, () => {
        const whole = checkItem(item, name, content);
        if (item === "alarm") checkChannels(whole as unknown as RuleContent, settings);
        return { item, name, content: whole };
      });
    });
  };
  return {
    ...(alarms ? { alarm: checked("alarm", alarms) } : {}),
    ...(hooks ? { hook: checked("hook", hooks) } : {}),
  };
}

/**
 * Plans alarm rules and hooks. Without side effects. The plan contains only those that the caller may view.
 * @throws ACCESS_DENIED if a given one is in another namespace
 */
export function plannedItems(
  store: Pick<Store, "applied">,
  given: GivenItems,
  options: PlanOptions,
  { who, reach }: Pick<Call, "who" | "reach">,
): Promise<ItemPlan> {
  const reaches = new Map(
    itemKinds.flatMap((item) => (given[item] ? [[item, who === null ? reach : reachOf(item, who, "viewer")]] : [])),
  );
  for (const item of itemKinds) for (const { name } of given[item] ?? []) reaches.get(item)?.check(name);
  return itemPlanOf(store, given, options, (item, { name }) => reaches.get(item)?.has(name) ?? false);
}

/** Refuses a plan with a step about an alarm rule or a hook that needs more rights than the caller has. @throws ACCESS_DENIED */
export async function checkItemSteps(
  { applied }: Pick<Store, "applied">,
  { items }: ItemPlan,
  { who, reach }: Pick<Call, "who" | "reach">,
): Promise<void> {
  const changed = items.filter(({ kind }) => kind !== "none");
  for (const item of itemKinds) {
    const of = changed.filter((step) => step.item === item);
    if (of.length === 0) continue;
    const may = who === null ? reach : reachOf(item, who, "admin");
    for (const { name } of of) may.check(name);
    if (item === "hook" || may.namespaces === null) continue;
    const names = of.map(({ name }) => name);
    const stored = (await applied.items(item, names, "")).map(({ content }) => content);
    const becoming = of.flatMap(({ content }) => (content ? [content] : []));
    for (const content of [...stored, ...becoming] as ItemContent[])
      checkRuleReach(content as unknown as RuleContent, may);
  }
}
