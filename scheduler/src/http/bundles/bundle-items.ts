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

/**
 * The namespaces in which the caller has the role `policy` for alarm rules or hooks. A token also needs the matching scope. @throws
 * ACCESS_DENIED
 */
const reachOf = (item: ItemKind, who: NonNullable<Call["who"]>, policy: Role) =>
  checkPolicy(who, { policy, touches: "listed", noun: itemParts[item], writes: policy === "admin" });

/**
 * Removes empty lists of alarm rules or hooks that the caller's token has no scope to read. A client that prunes sends such lists even if
 * its files contain only tasks.
 * @returns what is left, and the kinds that were removed
 */
export function readable(given: GivenItems, who: Call["who"]): { given: GivenItems; unreadItems: ItemKind[] } {
  const scopes = who?.scopes ?? null;
  const unreadItems = itemKinds.filter(
    (item) => given[item]?.length === 0 && scopes !== null && !scopes.includes(`${itemParts[item]}:read`),
  );
  const left = itemKinds.filter((item) => given[item] && !unreadItems.includes(item));
  return { given: Object.fromEntries(left.map((item) => [item, given[item]])), unreadItems };
}

/** Checks the given alarm rules and hooks. @throws an error whose `path` names the place in the request, such as OPTION_INVALID */
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
 * Plans alarm rules and hooks, and changes nothing. The plan contains only those that the caller may view.
 * @throws ACCESS_DENIED if the caller may not view a given one
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

/** Checks that the caller has the role admin for each alarm rule and hook that the plan changes. @throws ACCESS_DENIED */
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
