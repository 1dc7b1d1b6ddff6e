import type { Answer } from "../../api/contract.ts";
import type { Applied } from "../../apply/apply.ts";
import type { AppliedStep, GivenItems } from "../../apply/apply-items.ts";
import type { PlanStep } from "../../apply/apply-plan.ts";
import type { ApplyPlan, ItemStep } from "../../apply/plan-items.ts";
import { itemParts } from "../../apply/read.ts";
import { CarillonError, type ErrorCode, isCarillonError } from "../../base/errors.ts";
import { itemKinds } from "../../task/applied-store.ts";

type By = Answer<"planBundle">["steps"][number]["by"];
const byRecord = (by: By) =>
  by ? { by: { author: by.author, reason: by.reason, changedMs: Date.parse(by.changed) } } : {};

/** The answer of `planBundle`. An older server, which plans only tasks, leaves out the optional fields. */
type Planned = Omit<Answer<"planBundle">, "itemSteps" | "leftItems" | "unreadItems"> & Partial<Answer<"planBundle">>;

export const planRecord = ({
  bundle,
  steps,
  left,
  itemSteps: items = [],
  leftItems = [],
  unreadItems = [],
}: Planned): ApplyPlan => ({
  bundle,
  left,
  leftItems,
  unreadItems,
  steps: steps.map(
    ({ definition, by, ...step }) =>
      ({ ...step, ...(definition === null ? {} : { definition }), ...byRecord(by) }) as unknown as PlanStep,
  ),
  items: items.map(
    ({ content, given, by, ...step }) =>
      ({
        ...step,
        ...(content === null ? {} : { content }),
        ...(given === null ? {} : { given }),
        ...byRecord(by),
      }) as unknown as ItemStep,
  ),
});

const bare = { changes: [], drift: [], keepsEdits: false };
type Failure = Answer<"applyBundle">["applied"][number]["error"];
const errorRecord = (error: Failure) =>
  error
    ? { error: new CarillonError(error.code as ErrorCode, error.message, { hint: error.hint, path: error.path }) }
    : {};

// The server applies only the plan that was shown, so `steps` normally contains the step; otherwise the step is built from the answer.

export const appliedRecord = (
  { task, kind, version, ended, error }: Answer<"applyBundle">["applied"][number],
  { steps }: ApplyPlan,
): Applied => {
  const step = steps.find((one) => one.task === task) ?? { task, kind, version, ...bare };
  return { step, version, ...(ended === undefined ? {} : { ended }), ...errorRecord(error) };
};

export const appliedItemRecord = (
  { item, name, kind, version, error }: Answer<"applyBundle">["appliedItems"][number],
  { items }: ApplyPlan,
): AppliedStep => {
  const found = items.find((one) => one.item === item && one.name === name);
  return { step: found ?? { item, name, kind, version, ...bare }, version, ...errorRecord(error) };
};

/**
 * Converts alarm rules and hooks to the form of a request. An empty list is sent only if `prune` is true, so that a token without rights on
 * alarm rules and hooks can apply tasks.
 */
export const givenParts = (items: GivenItems, prune: boolean): object =>
  Object.fromEntries(
    itemKinds.flatMap((item) => {
      const given = items[item] ?? [];
      return given.length > 0 || prune
        ? [[itemParts[item], given.map(({ name, content }) => ({ name, content }))]]
        : [];
    }),
  );

/**
 * True if the server refused the request because its version plans only tasks. The bundles of such a server contain no alarm rules and
 * hooks, so there is nothing to prune.
 */
export const plansOnlyTasks = (error: unknown): boolean =>
  isCarillonError(error, "REQUEST_INVALID") && itemKinds.some((item) => error.message.includes(`"${itemParts[item]}"`));
