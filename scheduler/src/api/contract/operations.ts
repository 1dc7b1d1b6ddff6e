import { z } from "zod";
import { limits } from "../../base/limits.ts";
import { namespaceLength } from "../../base/namespace.ts";
import { operationKinds, operationStates } from "../../run/operations.ts";
import { id, maybeTime, name, page, paged, reason, route, taskName, texts, time } from "./route.ts";
import { runLabel, runStates } from "./runs.ts";

const filter = z
  .strictObject({
    task: taskName,
    matching: name(limits.taskNameLength),
    group: name(limits.groupNameLength),
    namespaces: z.array(name(namespaceLength)).min(1).max(limits.grants).describe("Whose tasks are meant."),
    fingerprint: name(limits.fingerprintLength),
    labels: texts.describe("Of runs and dead letters: what the run has."),
    run: id.describe("Of dead letters: the one of this run."),
    states: z.array(z.enum(runStates)).max(runStates.length),
    since: time,
    until: time,
    all: z.boolean().describe("Everything is meant, and nothing else is given."),
  })
  .partial()
  .meta({ id: "Filter", description: "Which tasks, runs or dead letters are meant: those that match all of it." });

const range = z
  .strictObject({
    from: time,
    to: time,
    perSecond: z.number().nullable(),
    reverse: z.boolean().describe("The newest first."),
    missed: z.boolean().describe("Also slots that the ledger tells as missed or skipped."),
  })
  .meta({ id: "BackfillRange" });

export const operation = z
  .strictObject({
    operation: id,
    kind: z.enum(operationKinds),
    state: z.enum(operationStates),
    author: z.string(),
    reason: z.string(),
    filter,
    range: range.optional(),
    pauseUntil: time.optional().describe("Of a pause: when its tasks are resumed by themselves."),
    total: z.int(),
    done: z.int(),
    passed: z
      .int()
      .describe("What needed nothing any more when its turn came: of a cancel, what had ended before it was reached."),
    asked: z.int().describe("Of a cancel: runs whose workers were told to stop them, and that go on yet."),
    late: z.int().describe("Of a cancel: runs that were told to stop, and ended otherwise."),
    failed: z.int(),
    error: z.string().nullable(),
    created: time,
    started: maybeTime,
    ended: maybeTime,
  })
  .meta({ id: "Operation" });

const kindOf = z.enum(operationKinds).describe("What is done to each task, run or dead letter that matches.");
const params = z.strictObject({ operation: id.describe("The operation's number.") });
const refused = ["FILTER_EMPTY", "OPTION_INVALID", "TASK_UNKNOWN"] as const;
const asked = {
  kind: kindOf,
  filter,
  range: range
    .partial({ to: true, perSecond: true, reverse: true, missed: true })
    .optional()
    .describe("Of a backfill."),
  pauseUntil: time.optional().describe("Of a pause: when its tasks are resumed by themselves."),
};
const reasonOf = z.strictObject({ code: z.string(), words: z.string() }).nullable();
const noun = "operations" as const;

const letters = {
  task: taskName.optional().describe("Only letters of this task."),
  matching: name(limits.taskNameLength)
    .optional()
    .describe("Only letters of tasks with such a name: * stands for any text, ? for one character."),
  group: name(limits.groupNameLength).optional().describe("Only letters of the tasks of this group."),
  namespaces: z.array(name(namespaceLength)).max(limits.grants).optional().describe("Whose tasks' letters."),
  since: time.optional().describe("Only letters of runs that ended at or after this time."),
  until: time.optional().describe("Only letters of runs that ended before this time."),
  fingerprint: name(limits.fingerprintLength).optional().describe("Only letters that failed of the same reason."),
  label: runLabel.describe("Only letters of runs with these labels, each as name:value."),
};

export const operationRoutes = {
  listOperations: route({
    touches: "listed",
    method: "GET",
    path: "/v1/operations",
    noun,
    policy: "viewer",
    summary: "What acts on many tasks or runs, newest first",
    query: z.strictObject(paged),
    answer: page(operation),
    errors: [],
  }),
  getOperation: route({
    touches: "operation",
    method: "GET",
    path: "/v1/operations/{operation}",
    noun,
    policy: "viewer",
    params,
    summary: "How far an operation is",
    answer: operation,
    errors: ["OPERATION_UNKNOWN"],
  }),
  previewOperation: route({
    touches: "body",
    method: "POST",
    path: "/v1/operations/preview",
    noun,
    policy: "operator",
    asks: true,
    summary: "What an operation would act on: how many, and the first of them",
    body: z.strictObject(asked),
    answer: z.strictObject({ total: z.int(), first: z.array(z.string()) }),
    errors: refused,
  }),
  beginOperation: route({
    touches: "body",
    method: "POST",
    path: "/v1/operations",
    noun,
    policy: "operator",
    status: 202,
    makes: { readBy: "getOperation", places: { operation: "operation" } },
    summary: "Pause, resume, cancel, run again, redrive, dismiss or backfill everything that a filter matches",
    body: z.strictObject({ ...asked, reason }),
    answer: operation,
    errors: [...refused, "QUOTA_EXCEEDED"],
  }),
  stopOperation: route({
    touches: "operation",
    method: "POST",
    path: "/v1/operations/{operation}/stop",
    noun,
    policy: "operator",
    params,
    summary: "Stop an operation where it is; what it did stays",
    answer: operation,
    errors: ["OPERATION_UNKNOWN", "OPERATION_STATE"],
  }),
  listDeadGroups: route({
    touches: "listed",
    method: "GET",
    path: "/v1/dead-letters/groups",
    noun,
    policy: "viewer",
    summary: `Open dead letters counted by what they failed of: the ${limits.deadGroups} largest groups, the largest first`,
    query: z.strictObject(letters),
    answer: z.strictObject({
      groups: z.array(
        z.strictObject({
          fingerprint: z.string(),
          reason: reasonOf,
          letters: z.int(),
          tasks: z.array(taskName).describe(`The first by name, ${limits.deadGroupTasks} at most.`),
          taskCount: z.int(),
          first: time,
          last: time,
          lastRun: id,
        }),
      ),
      total: z
        .strictObject({ groups: z.int(), letters: z.int() })
        .describe("Of all, also of those that are not listed."),
    }),
    errors: ["OPTION_INVALID"],
  }),
  listErrors: route({
    touches: "listed",
    method: "GET",
    path: "/v1/errors",
    noun: "runs",
    policy: "viewer",
    summary: `Why runs failed: the last ${limits.failuresRead} failed runs by their reasons, the most frequent first`,
    query: z.strictObject({
      task: taskName.optional().describe("Only runs of this task."),
      since: time.optional().describe("Only runs that ended at or after this time. Default: seven days ago."),
    }),
    answer: z
      .strictObject({
        from: time.describe(
          "All failures from then on are counted; later than `since` if there are more than are read.",
        ),
        groups: z.array(
          z.strictObject({
            fingerprint: z.string(),
            reason: reasonOf,
            runs: z.int(),
            first: time,
            last: time,
            lastRun: id,
            tasks: z.array(taskName).describe(`The first by name, ${limits.deadGroupTasks} at most.`),
            taskCount: z.int(),
            broughtBy: z
              .string()
              .nullable()
              .describe(
                "The release that began after `from` and on whose worker the first of them failed; null: none.",
              ),
            trend: z.array(z.int()).describe("Runs in each of 24 equal parts of the time from `from` to now."),
          }),
        ),
        groupCount: z.int().describe("The number of all groups, also of those that are not listed."),
      })
      .meta({ id: "Errors" }),
    errors: ["TASK_UNKNOWN"],
  }),
  listDeadLetters: route({
    touches: "listed",
    method: "GET",
    path: "/v1/dead-letters",
    noun,
    policy: "viewer",
    summary: "Open dead letters, newest first",
    query: z.strictObject({ ...paged, ...letters }),
    answer: page(z.strictObject({ run: id, task: taskName, ended: time, fingerprint: z.string() })),
    errors: ["OPTION_INVALID"],
  }),
} as const;
