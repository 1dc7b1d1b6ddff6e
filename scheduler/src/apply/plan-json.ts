import { createHash } from "node:crypto";
import { isoTime } from "../api/run-json.ts";
import { CarillonError } from "../base/errors.ts";
import { sortedJson } from "../base/json.ts";
import type { Applied } from "./apply.ts";
import type { ApplyPlan, PlanStep } from "./apply-plan.ts";

/**
 * Returns the plan's id. Plans of the same bundle with equal steps based on equal versions have the same id; steps that change nothing do
 * not count.
 */
export const planId = ({ bundle, steps }: ApplyPlan): string => {
  const content = steps
    .filter(({ kind }) => kind !== "none")
    .map(({ task, kind, version, definition }) => [task, kind, version, definition ?? null]);
  return createHash("sha256")
    .update(sortedJson([bundle, content]))
    .digest("hex")
    .slice(0, 12);
};

export const stalePlan = (present: string, expected: string): CarillonError =>
  new CarillonError("TASK_STALE", `the plan is ${present} by now, not ${expected}: tasks or files were changed`, {
    hint: "Look at carillon diff again, and apply what it shows.",
  });

/** Converts a step to JSON; the command line and the HTTP API return the same form. */
export const stepObject = ({ definition: _, by, changes, ...step }: PlanStep) => ({
  ...step,
  changes: changes.map(({ path, was = null, is = null }) => ({ path, was, is })),
  ...(by ? { by: { author: by.author, reason: by.reason, changed: isoTime(by.changedMs) } } : {}),
});

export const appliedObject = ({ step: { task, kind }, version, ended, error }: Applied) => ({
  task,
  kind,
  version,
  ...(ended === undefined ? {} : { ended }),
  ...(error ? { error: { code: error.code, path: error.path, message: error.message, hint: error.hint } } : {}),
});
