import { z } from "zod";
import { limits } from "../../base/limits.ts";
import { namespaceLength } from "../../base/namespace.ts";
import { ifKeyTakens } from "../../run/enqueue-options.ts";
import { liveStates, outcomes, runSources } from "../../run/run.ts";
import { durabilities } from "../../task/kinds/storage.ts";
import {
  duration,
  id,
  json,
  limit,
  maybeTime,
  name,
  page,
  paged,
  reason,
  route,
  spanMs,
  taskName,
  text,
  texts,
  time,
} from "./route.ts";
import { optionSchema } from "./task-options.ts";

export const runStates = [...liveStates, ...outcomes] as const;

const failure = z.looseObject({ code: z.string().optional(), message: z.string().optional() }).nullable();

const runSource = z.enum(runSources);

export const runLabel = z
  .array(text(limits.runLabelNameLength + 1 + limits.runLabelLength).regex(/^[^:]+:/, "is not name:value"))
  .max(limits.runLabels)
  .optional();

export const runSummary = z
  .strictObject({
    run: id,
    task: taskName,
    version: z.int(),
    state: z.enum(runStates),
    source: runSource,
    priority: z.int(),
    key: z.string().nullable(),
    slot: maybeTime,
    due: time,
    created: time,
    claimed: maybeTime,
    started: maybeTime,
    ended: maybeTime,
    lateMs: spanMs.nullable(),
    ownWaitMs: spanMs
      .nullable()
      .describe(
        "The part of lateMs for which it waited for its own limit, rate, predecessor or pause, not for a worker.",
      ),
    tookMs: spanMs.nullable(),
    attempt: z.int(),
    fence: z.int().nullable(),
    node: z.string().nullable(),
    release: z.string().nullable().describe("The release of the process `node`; null: it has none, or is forgotten."),
    addressee: z.string().nullable(),
    limitKey: z.string().nullable(),
    overrides: z
      .strictObject({ retry: json.optional(), runTimeout: duration.nullable().optional() })
      .nullable()
      .describe("Its own policies, in place of its task's; null: it has none."),
    expires: maybeTime.describe("If it has not begun by then, it ends as skipped; null: it does not expire."),
    labels: texts.describe("Its own, and its task's `runLabels`."),
    shard: z.strictObject({ index: z.int(), total: z.int() }).nullable(),
    error: failure,
  })
  .meta({ id: "RunSummary" });

const attempt = z.strictObject({
  attempt: z.int(),
  fence: z.int(),
  node: z.string().nullable(),
  claimed: maybeTime,
  started: maybeTime,
  ended: time,
  outcome: z.string(),
  error: failure,
});

const run = runSummary
  .extend({
    payload: json,
    progress: json,
    result: json,
    attempts: z.array(attempt).describe("That did not end the run; its last one is told by the run itself."),
    relatives: z.array(
      z.strictObject({
        run: id,
        task: taskName,
        state: z.string(),
        relation: z.enum(["parent", "input", "child", "after", "join", "chain"]),
      }),
    ),
    late: z
      .array(
        z.strictObject({ at: time, fence: z.int(), node: z.string().nullable(), outcome: z.string(), error: json }),
      )
      .describe("What workers said of it too late: refused, and kept."),
    letter: z
      .strictObject({
        fingerprint: z.string(),
        state: z.enum(["open", "redriven", "dismissed"]),
        redrivenBy: id.nullable(),
      })
      .nullable()
      .describe("The dead letter that it is."),
    redrives: id.nullable().describe("The run whose dead letter it redrives."),
  })
  .meta({ id: "Run" });

const logLevels = ["debug", "info", "warn", "error"] as const;
const logLine = z
  .strictObject({
    id: z.string().describe("Its place in the log by time; `beside` and `after` take it."),
    at: time,
    attempt: z.int(),
    level: z.enum(logLevels),
    message: z.string(),
    fields: json,
  })
  .meta({ id: "LogLine" });

const explained = runSummary
  .pick({
    run: true,
    task: true,
    state: true,
    source: true,
    due: true,
    lateMs: true,
    tookMs: true,
    attempt: true,
    node: true,
  })
  .extend({
    reasons: z.array(
      z.strictObject({
        code: z.string(),
        words: z.string(),
        shown: z.record(z.string(), z.unknown()).describe("The figures that show it."),
      }),
    ),
  })
  .meta({ id: "ExplainedRun" });

const params = z.strictObject({ run: id.describe("The run's number.") });
const enqueued = z
  .strictObject({
    run: id,
    created: z.boolean().describe("False: a run has the key, or stands for it (`uniqueFor`), and this is that run."),
    replaced: id.optional().describe("The waiting run with the key, which ended as skipped in favour of this one."),
    again: z.boolean().optional().describe("True: the run with the key has begun, and this enqueue follows its end."),
  })
  .meta({ id: "Enqueued" });

const when = {
  payload: json.optional().describe("What the handler is given: any JSON."),
  in: duration.optional().describe("Due this long from now."),
  at: time.optional().describe("Due at this time."),
  key: name(limits.keyLength).optional().describe("At most one unfinished run of a task has a key."),
  limitKey: name(limits.keyLength)
    .optional()
    .describe("The key by which the task's limit counts the run. Default: `key`."),
  priority: z.int().min(0).max(9).optional().describe("The higher starts first. Default: the task's."),
  retry: optionSchema("retry").optional().describe("Tries in all, or the whole policy. Default: the task's."),
  runTimeout: duration
    .nullable()
    .optional()
    .describe("The time after which an attempt of this run is stopped; null: none. Default: the task's."),
  expiresIn: duration.optional().describe("If it has not begun this long after it is due, it ends as skipped."),
  expiresAt: time.optional().describe("If it has not begun at this time, it ends as skipped."),
  labels: texts.optional().describe("Beside the task's `runLabels`. A task's `labels` are of workers."),
};
// `runTask` has no such field: it also writes an audit entry, which waits for the disk anyway.
const durability = z
  .enum(durabilities)
  .optional()
  .describe("`relaxed`: answered before the run is on the store's disk. Default: the task's.");
const payloadErrors = [
  "TASK_UNKNOWN",
  "PAYLOAD_TOO_LARGE",
  "PAYLOAD_NOT_JSON",
  "OPTION_INVALID",
  "DURATION_INVALID",
] as const;
const noun = "runs" as const;

export const runRoutes = {
  listRuns: route({
    touches: "listed",
    method: "GET",
    path: "/v1/runs",
    noun,
    policy: "viewer",
    summary: "Runs: what is under way or overdue by due time, then what ended, newest first",
    query: z.strictObject({
      ...paged,
      // The cursor is long, because it contains the ids of the live runs that earlier pages have shown.
      cursor: text(7_500).optional().describe("`next` of the page before."),
      task: taskName.optional().describe("Only runs of this task, which may be one that was removed."),
      state: z
        .array(z.enum(runStates))
        .max(runStates.length)
        .optional()
        .describe("Only runs in these states. Default: all, but for runs that wait for their time; those are `ready`."),
      since: time.optional().describe("Live ones due, others ended, at or after."),
      until: time.optional().describe("Live ones due, others ended, before."),
      matching: name(limits.taskNameLength)
        .optional()
        .describe("Only runs of tasks with such a name: * stands for any text, ? for one character."),
      group: name(limits.groupNameLength).optional().describe("Only runs of the tasks of this group."),
      namespace: name(namespaceLength).optional().describe("Only runs of the tasks in this namespace."),
      key: name(limits.keyLength)
        .optional()
        .describe("Only runs with this key; needs `task`, within which a key is unique."),
      source: runSource.optional().describe("Only runs that came to be so."),
      label: runLabel.describe("Only runs with these labels, each as name:value."),
    }),
    answer: page(runSummary),
    errors: ["TASK_UNKNOWN", "OPTION_INVALID"],
  }),
  listRecentRuns: route({
    touches: "listed",
    method: "GET",
    path: "/v1/recent-runs",
    noun,
    policy: "viewer",
    summary: "The last ended runs of several tasks, newest first; a task that there is not has none",
    query: z.strictObject({
      task: z.array(taskName).min(1).max(limits.recentTasks).describe("The names of the tasks."),
      each: z.int().min(1).max(limits.recentRuns).default(20).describe("Runs of each task at most."),
    }),
    answer: z.strictObject({
      tasks: z.array(
        z.strictObject({
          task: taskName,
          runs: z.array(
            z.strictObject({
              run: id,
              state: z.enum(outcomes),
              due: time,
              ended: time,
              lateMs: spanMs.nullable(),
              tookMs: spanMs.nullable(),
            }),
          ),
        }),
      ),
    }),
    errors: [],
  }),
  getRun: route({
    touches: "run",
    method: "GET",
    path: "/v1/runs/{run}",
    noun,
    policy: "viewer",
    params,
    summary: "One run with its attempts, where it comes from and what came of it",
    answer: run,
    errors: ["RUN_UNKNOWN"],
  }),
  explainRun: route({
    touches: "run",
    method: "GET",
    path: "/v1/runs/{run}/reasons",
    noun,
    policy: "viewer",
    params,
    summary: "Why a run waits, is late, failed, was skipped or cancelled; docs/reference/mcp.md lists the codes",
    answer: explained,
    errors: ["RUN_UNKNOWN"],
  }),
  explainRuns: route({
    touches: "listed",
    method: "GET",
    path: "/v1/run-reasons",
    noun,
    policy: "viewer",
    summary: "Why each of several runs waits or was late; a run that there is not is left out",
    query: z.strictObject({ run: z.array(id).min(1).max(limits.explainedRuns).describe("The runs' numbers.") }),
    answer: z.strictObject({ runs: z.array(explained) }),
    errors: [],
  }),
  listLogs: route({
    touches: "run",
    method: "GET",
    path: "/v1/runs/{run}/logs",
    noun,
    policy: "viewer",
    params,
    summary: "A run's log, oldest line first or newest",
    query: z.strictObject({
      cursor: paged.cursor,
      limit: limit(1_000, 200),
      order: z.enum(["oldest", "newest"]).default("oldest").describe("Which line comes first."),
      beside: z
        .string()
        .max(100)
        .optional()
        .describe("A line's id: only lines after it, newest first only those before it. A cursor goes before it."),
      level: z.enum(logLevels).optional().describe("No lines of a lesser level."),
      attempt: z
        .int()
        .min(1)
        .max(2 ** 31 - 1)
        .optional()
        .describe("Only lines of this attempt."),
      find: text(200).min(1).optional().describe("Only lines with this in message or fields; A to Z are as a to z."),
    }),
    answer: page(logLine).extend({
      tail: z.string().describe("`after` of the tail: what came after this page was read, whatever its time."),
    }),
    errors: ["RUN_UNKNOWN"],
  }),
  tailLogs: route({
    touches: "run",
    method: "GET",
    path: "/v1/runs/{run}/logs/tail",
    noun,
    policy: "viewer",
    params,
    summary: "A run's log as it is written; ends with the run",
    query: z.strictObject({
      after: z
        .string()
        .max(8_000)
        .optional()
        .describe(
          "What was not told up to a line (its `after`; also Last-Event-ID) or a page (its `tail`), or a line's id: later ones.",
        ),
    }),
    event: z.discriminatedUnion("type", [
      z.strictObject({ type: z.literal("line"), line: logLine, after: z.string() }).meta({ id: "LineWritten" }),
      z.strictObject({ type: z.literal("end"), state: z.enum(runStates) }).meta({ id: "LogEnded" }),
    ]),
    errors: ["RUN_UNKNOWN", "SERVER_BUSY", "STREAMS_TAKEN"],
  }),
  runTask: route({
    touches: "task",
    method: "POST",
    path: "/v1/tasks/{task}/runs",
    noun,
    policy: "operator",
    status: 201,
    makes: { readBy: "getRun", places: { run: "run" } },
    summary: "Run a task now or later, beside its schedule",
    params: z.strictObject({ task: taskName.describe("The task's name.") }),
    body: z.strictObject({
      ...when,
      ifKeyTaken: z
        .enum(ifKeyTakens)
        .optional()
        .describe(
          "What is done if an unfinished run has the key. `replace`: a run that waits for its first try ends as skipped. `again`: the same, and a run that has begun is followed by one more. Default: `keep`.",
        ),
      uniqueFor: duration
        .optional()
        .describe("For this long another such request of the key is answered with this run, also when it has ended."),
      maxWait: duration
        .optional()
        .describe("However often it is replaced, it is due at most this long after the first of these requests."),
      reason,
    }),
    answer: enqueued,
    errors: [...payloadErrors, "OPTION_INVALID", "QUOTA_EXCEEDED"],
  }),
  enqueueRuns: route({
    touches: "body",
    method: "POST",
    path: "/v1/runs",
    noun,
    policy: "operator",
    status: 201,
    large: true,
    summary: "Enqueue many runs at once: all of them, or none",
    body: z.strictObject({
      runs: z
        .array(z.strictObject({ task: taskName, ...when, durability }))
        .min(1)
        .max(limits.runsPerRequest)
        .describe("The runs to enqueue, each with its task."),
    }),
    answer: z.strictObject({ runs: z.array(enqueued) }),
    errors: [...payloadErrors, "QUOTA_EXCEEDED"],
  }),
  cancelRun: route({
    touches: "run",
    method: "POST",
    path: "/v1/runs/{run}/cancel",
    noun,
    policy: "operator",
    params,
    summary: "Cancel a run: one that waits never starts, one that runs is told to stop",
    body: z.strictObject({ reason }),
    answer: z.strictObject({ run: id, outcome: z.enum(["cancelled", "stopping"]) }),
    errors: ["RUN_UNKNOWN", "RUN_STATE"],
  }),
  rerunRun: route({
    touches: "run",
    method: "POST",
    path: "/v1/runs/{run}/rerun",
    noun,
    policy: "operator",
    params,
    status: 201,
    makes: { readBy: "getRun", places: { run: "run" } },
    summary: "Run an ended run again: a new run with its payload, key and priority",
    body: z.strictObject({ reason }),
    answer: enqueued,
    errors: ["QUOTA_EXCEEDED", "RUN_UNKNOWN", "RUN_STATE", "TASK_UNKNOWN"],
  }),
  decideRun: route({
    touches: "run",
    method: "POST",
    path: "/v1/runs/{run}/decide",
    noun,
    policy: "operator",
    params,
    summary: "Decide what becomes of a run whose worker was lost, where its task asks",
    body: z.strictObject({ how: z.enum(["retry", "fail"]).describe("Run it again, or give it up as failed."), reason }),
    answer: null,
    errors: ["RUN_UNKNOWN", "RUN_STATE"],
  }),
} as const;
