import { z } from "zod";
import {
  duration,
  id,
  json,
  maybeTime,
  name,
  page,
  paged,
  reason,
  route,
  taskName,
  text,
  texts,
  time,
  versionNumber,
} from "./contract-route.ts";
import { limits } from "./limits.ts";
import { namespaceLength } from "./namespace.ts";

const schedule = z
  .discriminatedUnion("type", [
    z.strictObject({
      type: z.literal("cron"),
      expression: text(limits.cronTextLength),
      zone: z.string().max(100).optional(),
      gap: z.enum(["skip", "shift"]).optional(),
      overlap: z.enum(["first", "last", "both"]).optional(),
      jitterMs: z.int().min(0).optional(),
    }),
    z.strictObject({
      type: z.literal("every"),
      everyMs: z.int().min(1),
      mode: z.enum(["rate", "delay"]).optional(),
      anchorMs: z.number().optional(),
      jitterMs: z.int().min(0).optional(),
    }),
    z.strictObject({ type: z.literal("at"), atMs: z.number() }),
    z.strictObject({ type: z.literal("manual") }),
  ])
  .meta({ id: "Schedule" });

const statuses = z.array(z.union([z.int(), z.string().max(10)])).max(100);
const command = z.strictObject({
  argv: z.array(text(16_384)).min(1).max(1_000),
  env: texts.optional(),
  cwd: text(4_096).optional(),
  stdin: z.string().optional(),
  user: text(100).optional(),
  okExitCodes: z.array(z.int()).max(256).optional(),
  retryExitCodes: z.array(z.int()).max(256).optional(),
});
const http = z.strictObject({
  url: text(limits.urlLength),
  method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]).optional(),
  headers: texts.optional(),
  body: json.optional(),
  timeout: duration.optional(),
  okStatuses: statuses.optional(),
  retryStatuses: statuses.optional(),
  redirects: z.int().min(0).optional(),
});

/** As in code (TaskOptions); what cannot stand together is refused by the same checks. */
export const taskOptions = z
  .strictObject({
    description: text(10_000),
    group: name(limits.groupNameLength),
    schedule,
    slotPayload: json,
    payloadSchema: z.record(z.string(), json).nullable().describe("JSON Schema of its payloads."),
    priority: z.int().min(0).max(9),
    timeout: duration.nullable(),
    retry: z.union([
      z.int(),
      z.strictObject({
        attempts: z.int().optional(),
        backoff: z.enum(["fixed", "exponential"]).optional(),
        delay: duration.optional(),
        maxDelay: duration.optional(),
        jitter: z.number().optional(),
      }),
    ]),
    overlap: z.union([z.enum(["allow", "queue", "skip", "replace"]), z.strictObject({ allow: z.int().min(1) })]),
    misfire: z.union([
      z.enum(["fire_once", "skip", "all"]),
      z.strictObject({
        policy: z.enum(["fire_once", "skip", "all"]).optional(),
        after: duration.optional(),
        cap: z.int().optional(),
        perSecond: z.int().optional(),
      }),
    ]),
    onWorkerLost: z.enum(["retry", "fail", "ask"]),
    history: z.enum(["all", "failures"]),
    grace: duration,
    command,
    http,
    calendar: z
      .strictObject({
        name: name(100),
        on: z.enum(["working-days", "holidays"]).optional(),
        otherwise: z.enum(["skip", "next", "previous"]).optional(),
      })
      .nullable(),
    blackout: z
      .array(
        z.strictObject({
          from: z.string().max(50),
          to: z.string().max(50),
          zone: z.string().max(100).optional(),
          days: z.array(z.string().max(20)).max(7).optional(),
          // biome-ignore lint/suspicious/noThenProperty: it is called so in a task's options.
          then: z.enum(["skip", "delay"]).optional(),
        }),
      )
      .max(limits.blackoutWindows)
      .nullable(),
    route: z.union([
      z.enum(["any", "random", "round-robin", "least-loaded", "least-recently-used", "sticky", "broadcast"]),
      z.strictObject({ hash: z.literal("key") }),
      z.strictObject({ pin: name(100) }),
      z.strictObject({ shards: z.int().min(1).max(limits.shards) }),
    ]),
    labels: texts,
    limit: z.strictObject({ perKey: z.int().min(1).optional(), perWorker: z.int().min(1).optional() }),
    rate: z.strictObject({ limit: z.int().min(1), per: duration, key: z.boolean().optional() }).nullable(),
    after: z
      .union([
        taskName,
        z.array(taskName).max(limits.upstreamTasks),
        z.strictObject({
          tasks: z.union([taskName, z.array(taskName).max(limits.upstreamTasks)]),
          on: z.enum(["success", "failure", "any"]).optional(),
        }),
      ])
      .nullable(),
  })
  .partial()
  .meta({ id: "TaskOptions" });

const counters = z.strictObject({
  succeeded: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  skipped: z.int(),
  missed: z.int(),
  retried: z.int(),
});

export const storedDefinition = z
  .record(z.string(), json)
  .describe("As the store has it: complete, with all defaults.");

const taskSummary = z
  .strictObject({
    name: taskName,
    version: id,
    group: z.string(),
    schedule: json,
    route: json,
    labels: texts,
    limit: json,
    rate: json,
    words: z.string().describe("The schedule in words."),
    next: maybeTime.describe("The next slot; null when none is to come."),
    paused: z.strictObject({ at: time, by: z.string(), why: z.string() }).nullable(),
    edited: z.array(z.string()).describe("Parts that were edited by hand; they stay so whatever the code says."),
    counters: counters.describe("Of ended runs and missed slots; exact."),
  })
  .meta({ id: "TaskSummary" });

export const task = taskSummary
  .extend({
    id: id.describe("Its number, by which jitter is drawn."),
    description: z.string(),
    changed: time,
    bundle: z.string().nullable().describe("Whose files define it."),
    definition: storedDefinition,
  })
  .meta({ id: "Task" });

const version = z
  .strictObject({ version: id, author: z.string(), reason: z.string(), changed: time, definition: storedDefinition })
  .meta({ id: "TaskVersion" });

const change = z.strictObject({ part: z.string(), was: json, is: json });
const changed = z
  .strictObject({
    name: taskName,
    version: id,
    changed: z.boolean(),
    changes: z.array(change),
    edited: z.array(z.string()),
  })
  .meta({ id: "TaskChanged" });

const params = z.strictObject({ task: taskName });
const unknown = ["TASK_UNKNOWN"] as const;
export const invalidTask = [
  ...["TASK_INVALID", "SCHEDULE_INVALID", "CRON_INVALID", "CRON_NEVER", "SLOT_TOO_FAR", "ZONE_UNKNOWN"],
  ...["DURATION_INVALID", "CALENDAR_UNKNOWN", "PAYLOAD_NOT_JSON", "PAYLOAD_TOO_LARGE"],
] as const as readonly (
  | "TASK_INVALID"
  | "SCHEDULE_INVALID"
  | "CRON_INVALID"
  | "CRON_NEVER"
  | "SLOT_TOO_FAR"
  | "ZONE_UNKNOWN"
  | "DURATION_INVALID"
  | "CALENDAR_UNKNOWN"
  | "PAYLOAD_NOT_JSON"
  | "PAYLOAD_TOO_LARGE"
)[];

const slot = z
  .strictObject({
    slot: time,
    outcome: z.enum(["run", "skipped", "missed"]),
    run: id.nullable(),
    reason: z.string().nullable(),
    term: z.int().nullable(),
    accepted: time,
  })
  .meta({ id: "Slot" });

const noun = "tasks" as const;

export const taskRoutes = {
  listTasks: route({
    ...{ touches: "listed", method: "GET", path: "/v1/tasks", noun, policy: "viewer" },
    summary: "Tasks, by name",
    query: z.strictObject({
      ...paged,
      group: name(limits.groupNameLength).optional(),
      matching: name(limits.taskNameLength).optional().describe("* stands for any text, ? for one character."),
      namespace: name(namespaceLength).optional(),
      paused: z.boolean().optional(),
    }),
    answer: page(taskSummary),
    errors: [],
  }),
  listComing: route({
    ...{ touches: "listed", method: "GET", path: "/v1/coming", noun, policy: "viewer" },
    summary: "The tasks that fire next, by time; what is planned already is among the runs that wait",
    query: z.strictObject({ count: z.int().min(1).max(limits.comingTasks).default(20) }),
    answer: z.strictObject({ coming: z.array(z.strictObject({ task: taskName, group: z.string(), next: time })) }),
    errors: [],
  }),
  getTask: route({
    ...{ touches: "task", method: "GET", path: "/v1/tasks/{task}", noun, policy: "viewer", params, etag: "gives" },
    summary: "One task with its definition",
    answer: task,
    errors: unknown,
  }),
  listFollowers: route({
    ...{ touches: "task", method: "GET", path: "/v1/tasks/{task}/followers", noun, policy: "viewer", params },
    summary: "The tasks that come after this one, by name",
    answer: z.strictObject({
      followers: z.array(
        z.strictObject({ task: taskName, on: z.enum(["success", "failure", "any"]), with: z.array(taskName) }),
      ),
    }),
    errors: unknown,
  }),
  listTaskVersions: route({
    ...{ touches: "task", method: "GET", path: "/v1/tasks/{task}/versions", noun, policy: "viewer", params },
    summary: "The versions of a task's definition, newest first",
    query: z.strictObject(paged),
    answer: page(version),
    errors: unknown,
  }),
  diffTask: route({
    ...{ touches: "task", method: "GET", path: "/v1/tasks/{task}/diff", noun, policy: "viewer", params },
    summary: "What differs between two versions",
    query: z.strictObject({ from: versionNumber, to: versionNumber.optional().describe("Default: the present one.") }),
    answer: z.strictObject({ from: id, to: id, changes: z.array(change) }),
    errors: [...unknown, "VERSION_UNKNOWN"],
  }),
  listUpcomingSlots: route({
    ...{ touches: "task", method: "GET", path: "/v1/tasks/{task}/upcoming", noun, policy: "viewer", params },
    summary: "The slots to come, with what calendar and blackouts make of each",
    query: z.strictObject({
      after: time.optional().describe("Default: now."),
      count: z.int().min(1).max(1_000).default(20),
    }),
    answer: z.strictObject({
      zone: z.string(),
      words: z.string(),
      paused: z.boolean(),
      slots: z.array(z.strictObject({ slot: time, due: maybeTime, note: z.string() })),
    }),
    errors: unknown,
  }),
  listSlots: route({
    ...{ touches: "task", method: "GET", path: "/v1/tasks/{task}/slots", noun, policy: "viewer", params },
    summary: "What came of past slots, newest first, and what was missed or skipped as ranges",
    query: z.strictObject({ ...paged, since: time.optional(), until: time.optional() }),
    answer: z.strictObject({
      items: z.array(slot),
      next: z.string().nullable(),
      ranges: z.array(
        z.strictObject({
          from: time,
          to: time,
          version: id,
          slots: z.int().nullable(),
          outcome: z.enum(["skipped", "missed"]),
          reason: z.string(),
        }),
      ),
    }),
    errors: unknown,
  }),
  checkPayload: route({
    ...{
      touches: "task",
      method: "POST",
      path: "/v1/tasks/{task}/payload",
      noun,
      policy: "viewer",
      params,
      asks: true,
    },
    summary: "What a task's payload schema has against a payload, and where; changes nothing",
    body: z.strictObject({ payload: json }),
    answer: z.strictObject({
      checked: z.boolean().describe("false: it has no schema, or one that only its handler can check."),
      issues: z.array(z.strictObject({ path: z.array(z.union([z.string(), z.int()])), message: z.string() })),
    }),
    errors: unknown,
  }),
  createTask: route({
    ...{
      touches: "task",
      method: "PUT",
      path: "/v1/tasks/{task}",
      noun,
      policy: "editor",
      params,
      etag: "gives",
      status: 201,
    },
    summary: "Define a task that no code stands behind, such as a command or a URL to call",
    body: z.strictObject({ options: taskOptions, reason }),
    answer: task,
    errors: [...invalidTask, "TASK_NAME_TAKEN"],
  }),
  defineTask: route({
    ...{
      touches: "task",
      method: "PUT",
      path: "/v1/tasks/{task}/definition",
      noun,
      policy: "editor",
      params,
      etag: "demands",
    },
    summary:
      "Say anew what defines a task, as code would: what was edited by hand stays. From version 0: there is none",
    body: z.strictObject({ options: taskOptions, reason }),
    answer: changed,
    errors: [...invalidTask, "TASK_STALE", "PRECONDITION_NEEDED"],
  }),
  editTask: route({
    ...{ touches: "task", method: "PATCH", path: "/v1/tasks/{task}", noun, policy: "editor", params, etag: "demands" },
    summary: "Edit parts of a task; they stay so when its code is started again",
    body: z.strictObject({ options: taskOptions, reason }),
    answer: changed,
    errors: [...unknown, ...invalidTask, "TASK_STALE", "PRECONDITION_NEEDED"],
  }),
  revertTask: route({
    ...{
      touches: "task",
      method: "POST",
      path: "/v1/tasks/{task}/revert",
      noun,
      policy: "editor",
      params,
      etag: "demands",
    },
    summary: "Go back: edited parts to what the code says, or all of it to an earlier version",
    body: z.strictObject({
      parts: z.array(name(50)).min(1).max(50).optional().describe("Default: all that were edited."),
      version: versionNumber.optional().describe("Instead: what the task was at this version."),
      reason,
    }),
    answer: changed,
    errors: [...unknown, ...invalidTask, "TASK_STALE", "PRECONDITION_NEEDED", "VERSION_UNKNOWN", "OPTION_INVALID"],
  }),
  removeTask: route({
    ...{ touches: "task", method: "DELETE", path: "/v1/tasks/{task}", noun, policy: "editor", params },
    summary: "Remove a task: nothing of it is planned or started again, its history stays",
    query: z.strictObject({ reason }),
    answer: null,
    errors: unknown,
  }),
  pauseTask: route({
    ...{ touches: "task", method: "POST", path: "/v1/tasks/{task}/pause", noun, policy: "operator", params },
    summary: "Stop firing a task; answered when nothing of it that had not started can start any more",
    body: z.strictObject({ reason }),
    answer: z.strictObject({ name: taskName, paused: z.boolean(), running: z.array(id).describe("Runs that go on.") }),
    errors: unknown,
  }),
  resumeTask: route({
    ...{ touches: "task", method: "POST", path: "/v1/tasks/{task}/resume", noun, policy: "operator", params },
    summary: "Let a paused task fire again, from now on",
    body: z.strictObject({ reason }),
    answer: z.strictObject({ name: taskName, paused: z.boolean(), next: maybeTime }),
    errors: unknown,
  }),
} as const;
