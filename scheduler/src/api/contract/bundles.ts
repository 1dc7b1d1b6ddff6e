import { z } from "zod";
import { hookFields } from "../../access/hooks/hook.ts";
import { limits } from "../../base/limits.ts";
import { itemKinds } from "../../task/applied-store.ts";
import { ruleFields } from "./alarm-rules.ts";
import { json, name, reason, route, taskName, time } from "./route.ts";
import { taskOptions } from "./task-options.ts";
import { invalidTask, storedDefinition } from "./tasks.ts";

const kind = z.enum(["create", "change", "adopt", "remove", "none", "refused"]);

const asked = {
  tasks: z
    .array(z.strictObject({ task: taskName, options: taskOptions }))
    .max(limits.tasksPerPlan)
    .describe("All that the bundle is to have."),
  alarms: z
    .array(z.strictObject({ name: name(limits.alarmRuleNameLength), content: z.strictObject(ruleFields) }))
    .max(limits.alarmRules)
    .optional()
    .describe("The alarm rules that the bundle is to have, for admins; left out: its alarm rules stay as they are."),
  hooks: z
    .array(z.strictObject({ name: name(limits.hookNameLength), content: z.strictObject(hookFields) }))
    .max(limits.hooks)
    .optional()
    .describe("The incoming webhooks that the bundle is to have, for admins; left out: its hooks stay as they are."),
  prune: z.boolean().default(false).describe("Remove what the bundle once applied and is not among the given."),
  adopt: z.boolean().default(false).describe("Take over tasks that are there and no bundle's."),
  overwriteEdits: z.boolean().default(false).describe("Put back what was edited by hand."),
};

const step = z
  .strictObject({
    task: taskName,
    kind,
    why: z.string().optional().describe("It is refused."),
    hint: z.string().optional(),
    version: z.int().describe("That it is made from; 0: there never was one."),
    definition: storedDefinition.nullable().describe("As it will be; null: it is removed, or another's."),
    changes: z.array(z.strictObject({ path: z.string(), was: json, is: json })),
    drift: z
      .array(z.strictObject({ part: z.string(), applied: json, stored: json }))
      .describe("Parts that were changed since the last apply."),
    waiting: z.int().optional().describe("Of a removal: waiting runs that would end with the task."),
    keepsEdits: z.boolean().describe("They stay as they are."),
    by: z.strictObject({ author: z.string(), reason: z.string(), changed: time }).optional(),
  })
  .meta({ id: "PlanStep" });

const item = z.enum(itemKinds);
const itemName = z.string();

const itemStep = z
  .strictObject({
    item,
    name: itemName,
    kind,
    why: z.string().optional().describe("It is refused."),
    hint: z.string().optional(),
    version: z.int().describe("That it is made from; 0: there is none."),
    content: z.record(z.string(), json).nullable().describe("As it will be; null: it is removed, or another's."),
    given: z.record(z.string(), json).nullable().describe("As it was given, without edits by hand that stay."),
    changes: z.array(z.strictObject({ path: z.string(), was: json, is: json })),
    drift: z
      .array(z.strictObject({ part: z.string(), applied: json, stored: json }))
      .describe("Parts that were changed since the last apply."),
    keepsEdits: z.boolean().describe("They stay as they are."),
    by: z.strictObject({ author: z.string(), reason: z.string(), changed: time }).optional(),
  })
  .meta({ id: "PlanItemStep" });

const failure = z
  .strictObject({
    code: z.string(),
    path: z.string().default("").describe("The part that is wrong; empty: none in particular."),
    message: z.string(),
    hint: z.string(),
  })
  .optional()
  .describe("It was not done, for this reason.");

const params = z.strictObject({ bundle: name(100).describe("The bundle's name: tasks that are applied together.") });
const noun = "tasks" as const;
const shared = { touches: "body", method: "POST", noun, params, large: true } as const;
const errors = [...invalidTask, "TASK_DUPLICATE", "OPTION_INVALID", "DURATION_INVALID", "ZONE_UNKNOWN"] as const;

/** The routes for tasks that are defined in files: see docs/tasks/as-code.md. */
export const bundleRoutes = {
  planBundle: route({
    ...shared,
    path: "/v1/bundles/{bundle}/plan",
    policy: "viewer",
    asks: true,
    summary: "What would have to be done so that a bundle has these tasks, alarm rules and hooks; changes nothing",
    body: z.strictObject(asked),
    answer: z.strictObject({
      plan: z.string().describe("The same for the same steps from the same versions."),
      bundle: z.string(),
      steps: z.array(step).describe("In the order in which they are carried out."),
      left: z.array(taskName).describe("The bundle's, not among the tasks, and left without `prune`."),
      itemSteps: z
        .array(itemStep)
        .default([])
        .describe("The steps of alarm rules and hooks, which follow those of the tasks."),
      leftItems: z
        .array(z.strictObject({ item, name: itemName }))
        .default([])
        .describe("Alarm rules and hooks of the bundle that were not given, and are left without `prune`."),
      unreadItems: z
        .array(item)
        .default([])
        .describe("Kinds whose empty list was taken as left out, because the token has no scope for them."),
    }),
    errors,
  }),
  applyBundle: route({
    ...shared,
    path: "/v1/bundles/{bundle}/apply",
    policy: "editor",
    summary:
      "Make a bundle's tasks, alarm rules and hooks these, each in a transaction; the answer says of each whether it was done",
    body: z.strictObject({
      ...asked,
      plan: name(50).describe("Refused unless this is what there is to do; *: whatever there is."),
      reason,
    }),
    answer: z.strictObject({
      plan: z.string(),
      bundle: z.string(),
      applied: z.array(
        z.strictObject({
          task: taskName,
          kind,
          version: z.int().describe("What it is at now."),
          ended: z.int().optional().describe("Of a removal: waiting runs that ended with the task."),
          error: failure,
        }),
      ),
      appliedItems: z
        .array(
          z.strictObject({
            item,
            name: itemName,
            kind,
            version: z.int().describe("What it is at now."),
            error: failure,
          }),
        )
        .default([]),
    }),
    errors: [...errors, "TASK_STALE", "PLAN_REFUSED"],
  }),
} as const;
