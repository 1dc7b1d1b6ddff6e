import { createHash } from "node:crypto";
import { isoTime } from "../api/run-json.ts";
import { CarillonError } from "../base/errors.ts";
import { sortedJson } from "../base/json.ts";
import type { Applied } from "./apply.ts";
import type { AppliedStep } from "./apply-items.ts";
import type { PlanStep, TaskPlan } from "./apply-plan.ts";
import type { ItemPlan, ItemStep } from "./plan-items.ts";

/**
 * Returns the plan's id. Plans of the same bundle with equal steps based on equal versions have the same id; steps that change nothing do
 * not count.
 */
export const planId = ({ bundle, steps, items = [] }: TaskPlan & Partial<ItemPlan>): string => {
  const content = steps
    .filter(({ kind }) => kind !== "none")
    .map(({ task, kind, version, definition }) => [task, kind, version, definition ?? null]);
  const contentOfItems = items
    .filter(({ kind }) => kind !== "none")
    .map(({ item, name, kind, version, content = null, given = null }) => [item, name, kind, version, content, given]);
  return createHash("sha256")
    .update(sortedJson([bundle, content, ...(contentOfItems.length > 0 ? [contentOfItems] : [])]))
    .digest("hex")
    .slice(0, 12);
};

/** Converts a step about an alarm rule or a hook to JSON. */
export const itemStepObject = ({ content: _, given: __, by, changes, ...step }: ItemStep) => ({
  ...step,
  ...stepParts({ by, changes }),
});

export const appliedItemObject = ({ step: { item, name, kind }, version, error }: AppliedStep) => ({
  item,
  name,
  kind,
  version,
  ...errorPart(error),
});

export const stalePlan = (present: string, expected: string): CarillonError =>
  new CarillonError("TASK_STALE", `the plan is ${present} by now, not ${expected}: tasks or files were changed`, {
    hint: "Look at carillon diff again, and apply what it shows.",
  });

/** Converts a step to JSON; the command line and the HTTP API return the same form. */
export const stepObject = ({ definition: _, by, changes, ...step }: PlanStep) => ({
  ...step,
  ...stepParts({ by, changes }),
});

const stepParts = ({ by, changes }: { by: PlanStep["by"] | undefined; changes: PlanStep["changes"] }) => ({
  changes: changes.map(({ path, was = null, is = null }) => ({ path, was, is })),
  ...(by ? { by: { author: by.author, reason: by.reason, changed: isoTime(by.changedMs) } } : {}),
});

export const appliedObject = ({ step: { task, kind }, version, ended, error }: Applied) => ({
  task,
  kind,
  version,
  ...(ended === undefined ? {} : { ended }),
  ...errorPart(error),
});

const errorPart = (error: CarillonError | undefined) =>
  error ? { error: { code: error.code, path: error.path, message: error.message, hint: error.hint } } : {};
