/**
 * The part of an apply plan about alarm rules and incoming webhooks, which files define beside tasks. Without side effects. The rules are
 * those of tasks (docs/tasks/as-code.md). A user's edit is kept or overwritten per top-level field of the content.
 */
import { checkHook, checkHookName } from "../access/hooks/hook.ts";
import { checkRule, checkRuleName, type RuleContent } from "../alarms/stored-rules.ts";
import { CarillonError, isCarillonError } from "../base/errors.ts";
import { type Json, sortedJson } from "../base/json.ts";
import type { AppliedItem, ItemKind } from "../task/applied-store.ts";
import { changesIn, type FieldChange } from "../task/written.ts";
import type { PlanOptions, PlanStep, TaskPlan } from "./apply-plan.ts";

export type ItemContent = Record<string, Json>;

/** An alarm rule or a hook that the files define. */
export interface GivenItem {
  item: ItemKind;
  name: string;
  content: ItemContent;
}

export interface ItemStep extends Pick<PlanStep, "kind" | "why" | "hint" | "version" | "keepsEdits" | "by"> {
  item: ItemKind;
  name: string;
  /** The content after the step; undefined if the item is removed, or belongs to another bundle. */
  content?: ItemContent;
  /** The content as the files have it, without edits by users that are kept. */
  given?: ItemContent;
  changes: FieldChange[];
  drift: { part: string; applied: Json; stored: Json }[];
}

export interface ItemPlan {
  items: ItemStep[];
  /** Items of the bundle that are missing from the files, but stay because `prune` was not given. */
  leftItems: { item: ItemKind; name: string }[];
  /** Kinds that were neither planned nor pruned, although an empty list of them was given: the caller's token is not for them. */
  unreadItems?: ItemKind[];
}

/** A plan of tasks, alarm rules and hooks. The steps of the last two follow those of the tasks. */
export type ApplyPlan = TaskPlan & ItemPlan;

/** What users call each kind. */
export const itemWords: Readonly<Record<ItemKind, string>> = { alarm: "alarm rule", hook: "hook" };

/** Checks the name of an alarm rule or a hook. @throws OPTION_INVALID without a path */
export function checkItemName(item: ItemKind, name: string): void {
  try {
    if (item === "alarm") checkRuleName(name);
    else checkHookName(name);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    throw new CarillonError(error.code, error.message, { hint: error.hint, cause: error });
  }
}

/**
 * Checks the content of an alarm rule or a hook, and returns it unchanged.
 * @throws OPTION_INVALID, DURATION_INVALID, ZONE_UNKNOWN; the error's path names the wrong part
 */
export const checkItem = (item: ItemKind, name: string, content: unknown): ItemContent =>
  (item === "alarm" ? checkRule(content as RuleContent) : checkHook(name, content)) as unknown as ItemContent;

/** Plans the items of one kind. @param present those with the wanted names, and all of the bundle */
export function planItems(
  item: ItemKind,
  wanted: readonly GivenItem[],
  present: readonly AppliedItem[],
  options: PlanOptions,
): ItemPlan {
  const there = new Map(present.map((one) => [one.name, one]));
  const named = new Set(wanted.map(({ name }) => name));
  const items = wanted.map((one) => stepOf(one, there.get(one.name), options));
  const gone = present.filter(({ name, bundle }) => bundle === options.bundle && !named.has(name));
  if (!options.prune) return { items, leftItems: gone.map(({ name }) => ({ item, name })) };
  const removals = gone.map((one): ItemStep => {
    const { name, version } = one;
    return { item, name, kind: "remove", version, changes: [], drift: driftOf(one), keepsEdits: false, by: byOf(one) };
  });
  return { items: [...items, ...removals], leftItems: [] };
}

function stepOf({ item, name, content }: GivenItem, present: AppliedItem | undefined, options: PlanOptions): ItemStep {
  const base = { item, name, version: present?.version ?? 0, changes: [], drift: [], keepsEdits: false };
  if (!present) return { ...base, kind: "create", content, given: content };
  const by = byOf(present);
  const refused = (why: string, hint: string): ItemStep => ({ ...base, by, kind: "refused", why, hint });
  const { bundle } = present;
  if (bundle !== null && bundle !== options.bundle)
    return refused(
      `it belongs to the bundle ${bundle}`,
      "Take it out of that bundle's files and apply them with --prune, or leave it out here.",
    );
  if (bundle === null && !options.adopt)
    return refused(
      `it is there already, made by ${present.author}, and belongs to no bundle`,
      "Say --adopt to let these files define it from now on.",
    );
  const drift = driftOf(present);
  const keepsEdits = drift.length > 0 && !options.overwriteEdits;
  const becomes = keepsEdits ? withEdits(content, present.content, drift) : content;
  try {
    checkItem(item, name, becomes);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    return {
      ...refused(
        `what the files say does not fit what was edited by hand: ${error.message}`,
        "Say --overwrite-edits to put back what was edited, or bring the edit into the files.",
      ),
      drift,
    };
  }
  const changes = changesIn("", present.content, becomes);
  const isSame = changes.length === 0 && bundle !== null && sortedJson(content) === sortedJson(present.applied);
  const kind = bundle === null ? "adopt" : isSame ? "none" : "change";
  return { ...base, by, kind, content: becomes, given: content, changes, drift, keepsEdits };
}

/** Returns the parts of the content that users have changed since the last apply. */
function driftOf({ content, applied }: AppliedItem): ItemStep["drift"] {
  if (applied === null) return [];
  return [...new Set([...Object.keys(applied), ...Object.keys(content)])]
    .filter((part) => sortedJson(applied[part]) !== sortedJson(content[part]))
    .map((part) => ({ part, applied: applied[part] ?? null, stored: content[part] ?? null }));
}

function withEdits(given: ItemContent, stored: ItemContent, drift: ItemStep["drift"]): ItemContent {
  const edited = new Set(drift.map(({ part }) => part));
  const kept = (content: ItemContent, isKept: (part: string) => boolean) =>
    Object.entries(content).filter(([part]) => isKept(part));
  return Object.fromEntries([...kept(given, (part) => !edited.has(part)), ...kept(stored, (part) => edited.has(part))]);
}

const byOf = ({ author, reason, changedMs }: AppliedItem) => ({ author, reason, changedMs });
