import { z } from "zod";
import { id, route, taskName } from "./route.ts";
import { runSummary } from "./runs.ts";

export const flowRoutes = {
  listFlow: route({
    touches: "listed",
    method: "GET",
    path: "/v1/flow",
    noun: "tasks",
    policy: "viewer",
    summary: "Which tasks come after which: all of them, or those that are connected with one task",
    query: z.strictObject({
      task: taskName
        .optional()
        .describe("Only this task and those that are connected with it, over any number of steps, the nearest first."),
    }),
    answer: z
      .strictObject({
        tasks: z.array(
          z.strictObject({
            task: taskName,
            group: z.string(),
            paused: z.boolean(),
            after: z
              .array(taskName)
              .describe("The tasks of this answer that it comes after; of several, all have to end."),
            on: z
              .enum(["success", "failure", "any"])
              .nullable()
              .describe("How these have to end; null: it comes after no task."),
          }),
        ),
        more: z.boolean().describe("There are more tasks than one answer has."),
      })
      .meta({ id: "Flow" }),
    errors: ["TASK_UNKNOWN"],
  }),
  getRunFamily: route({
    touches: "run",
    method: "GET",
    path: "/v1/runs/{run}/family",
    noun: "runs",
    policy: "viewer",
    params: z.strictObject({ run: id.describe("The run's number.") }),
    summary: "A run with the runs that it comes from, those that it made, and theirs, by number",
    answer: z
      .strictObject({
        runs: z.array(
          runSummary
            .extend({
              parent: id
                .nullable()
                .describe("The run of this answer that spawned it, or that it follows, joins or continues."),
              inputs: z
                .array(id)
                .describe(
                  "The runs of this answer that it follows, if they are several, or the one that it continues.",
                ),
            })
            .meta({ id: "RunOfFamily" }),
        ),
        more: z.boolean().describe("There are more runs than one answer has; it has those nearest to the run."),
      })
      .meta({ id: "RunFamily" }),
    errors: ["RUN_UNKNOWN"],
  }),
} as const;
