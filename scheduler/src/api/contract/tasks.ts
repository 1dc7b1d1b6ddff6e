import { z } from "zod";
import { limits } from "../../base/limits.ts";
import { namespaceLength } from "../../base/namespace.ts";
import { statisticsPeriods } from "../../task/statistics/statistics.ts";
import {
  id,
  json,
  maybeTime,
  name,
  page,
  paged,
  reason,
  route,
  taskName,
  texts,
  time,
  versionNumber,
} from "./route.ts";
import { taskOptions } from "./task-options.ts";

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
    of: taskName.nullable().describe("The task whose schedule it is; null: it is none."),
    schedules: z.int().describe("How many schedules it has, each a task called TASK:NAME."),
    schedule: json,
    route: json,
    labels: texts,
    owner: z.string().nullable().default(null).describe("The team or person that answers for it."),
    limit: json,
    rate: json,
    words: z.string().describe("The schedule in words."),
    next: maybeTime.describe("The next slot; null when none is to come."),
    paused: z
      .strictObject({
        at: time,
        by: z.string(),
        why: z.string(),
        until: maybeTime.describe("When it is resumed by itself."),
      })
      .nullable(),
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
    accounted: z
      .array(time)
      .describe(
        "Times of its schedule whose slots an edit moved ahead, and that ran, were skipped or missed before: they do not run again.",
      ),
    definition: storedDefinition,
  })
  .meta({ id: "Task" });

const spread = z
  .strictObject({
    runs: z.int(),
    mean: z.number(),
    p50: z.number(),
    p90: z.number(),
    p99: z.number(),
    most: z.number(),
  })
  .nullable();

const period = z.strictObject({
  from: time.describe("When it begins."),
  counts: counters.describe("Of runs that ended in it; exact."),
  took: spread.describe(
    "From start to end, ms, of runs that succeeded or failed; percentiles within 19 %; null: no such run.",
  ),
  late: spread.describe("How long they waited only for a worker before they started, ms."),
});

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

const params = z.strictObject({ task: taskName.describe("The task's name.") });
const unknown = ["TASK_UNKNOWN"] as const;
export const invalidTask = [
  "TASK_INVALID",
  "SCHEDULE_INVALID",
  "CRON_INVALID",
  "CRON_NEVER",
  "RRULE_INVALID",
  "RRULE_NEVER",
  "SLOT_TOO_FAR",
  "ZONE_UNKNOWN",
  "DURATION_INVALID",
  "CALENDAR_UNKNOWN",
  "PAYLOAD_NOT_JSON",
  "PAYLOAD_TOO_LARGE",
] as const as readonly (
  | "TASK_INVALID"
  | "SCHEDULE_INVALID"
  | "CRON_INVALID"
  | "CRON_NEVER"
  | "RRULE_INVALID"
  | "RRULE_NEVER"
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
    nominal: z
      .array(time)
      .nullable()
      .describe("The times of the task's own schedule that a calendar moved here; null: it stands for its own time."),
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
    touches: "listed",
    method: "GET",
    path: "/v1/tasks",
    noun,
    policy: "viewer",
    summary: "Tasks, by name",
    query: z.strictObject({
      ...paged,
      group: name(limits.groupNameLength).optional().describe("Only tasks of this group."),
      matching: name(limits.taskNameLength)
        .optional()
        .describe("Only tasks with such a name: * stands for any text, ? for one character."),
      namespace: name(namespaceLength).optional().describe("Only tasks in this namespace."),
      paused: z.boolean().optional().describe("true: only paused tasks; false: only tasks that are not paused."),
      owner: name(limits.ownerLength).optional().describe("Only tasks with this owner."),
      of: taskName.optional().describe("The schedules of this task alone."),
      schedules: z.boolean().default(true).describe("false: without the schedules of tasks."),
    }),
    answer: page(taskSummary),
    errors: [],
  }),
  listComing: route({
    touches: "listed",
    method: "GET",
    path: "/v1/coming",
    noun,
    policy: "viewer",
    summary: "The tasks that fire next, by time; what is planned already is among the runs that wait",
    query: z.strictObject({ count: z.int().min(1).max(limits.comingTasks).default(20).describe("Tasks at most.") }),
    answer: z.strictObject({ coming: z.array(z.strictObject({ task: taskName, group: z.string(), next: time })) }),
    errors: [],
  }),
  getTask: route({
    touches: "task",
    method: "GET",
    path: "/v1/tasks/{task}",
    noun,
    policy: "viewer",
    params,
    etag: "gives",
    summary: "One task with its definition",
    answer: task,
    errors: unknown,
  }),
  getTaskStatistics: route({
    touches: "task",
    method: "GET",
    path: "/v1/tasks/{task}/statistics",
    noun,
    policy: "viewer",
    params,
    summary: "How many runs of a task ended, how long they took and how late they began, by the hour, day or month",
    query: z.strictObject({
      by: z.enum(statisticsPeriods).default("day").describe("The length of a period; periods begin in UTC."),
      since: time
        .optional()
        .describe("The first period; default: two days of hours, thirty days, or thirteen months ago."),
    }),
    answer: z
      .strictObject({
        periods: z.array(period).describe("Those with figures, oldest first; the last is not over yet."),
        timesUntil: maybeTime.describe("Runs that ended before this are in `took` and `late`; null: none yet."),
        worse: z
          .array(
            z.strictObject({
              figure: z.enum(["took", "late", "failed"]),
              was: z.number().describe("In the two weeks before: p50 in ms, or for `failed` the share of runs."),
              is: z.number().describe("In the last 24 hours."),
            }),
          )
          .describe("Figures of the last 24 hours that are clearly worse than in the two weeks before."),
      })
      .meta({ id: "TaskStatistics" }),
    errors: unknown,
  }),
  listFollowers: route({
    touches: "task",
    method: "GET",
    path: "/v1/tasks/{task}/followers",
    noun,
    policy: "viewer",
    params,
    summary: "The tasks that come after this one, by name",
    answer: z.strictObject({
      followers: z.array(
        z.strictObject({ task: taskName, on: z.enum(["success", "failure", "any"]), with: z.array(taskName) }),
      ),
    }),
    errors: unknown,
  }),
  listTaskReleases: route({
    touches: "task",
    method: "GET",
    path: "/v1/tasks/{task}/releases",
    noun,
    policy: "viewer",
    params,
    summary: "Which releases of the code that defines the task there are, the newest first",
    answer: z.strictObject({
      releases: z.array(
        z.strictObject({
          release: z.string().describe("Its label, and a short text that stands for all its definitions."),
          number: z.int().nullable().describe("Of a label that is a whole number: the greater one holds."),
          inForce: z.boolean().describe("The task has this release's definition."),
          first: time.describe("When it first brought a definition."),
          seen: time.describe("When a process of it last started or ended."),
          processes: z.array(z.string()).describe("Those of it that live."),
        }),
      ),
    }),
    errors: unknown,
  }),
  listTaskVersions: route({
    touches: "task",
    method: "GET",
    path: "/v1/tasks/{task}/versions",
    noun,
    policy: "viewer",
    params,
    summary: "The versions of a task's definition, newest first; also of one that was removed",
    query: z.strictObject(paged),
    answer: page(version),
    errors: unknown,
  }),
  diffTask: route({
    touches: "task",
    method: "GET",
    path: "/v1/tasks/{task}/diff",
    noun,
    policy: "viewer",
    params,
    summary: "What differs between two versions",
    query: z.strictObject({
      from: versionNumber.describe("The version to compare from."),
      to: versionNumber.optional().describe("The version to compare to. Default: the present one."),
    }),
    answer: z.strictObject({ from: id, to: id, changes: z.array(change) }),
    errors: [...unknown, "VERSION_UNKNOWN"],
  }),
  listUpcomingSlots: route({
    touches: "task",
    method: "GET",
    path: "/v1/tasks/{task}/upcoming",
    noun,
    policy: "viewer",
    params,
    summary: "The slots to come, with what calendar and blackouts make of each",
    query: z.strictObject({
      after: time.optional().describe("Only slots after this time. Default: now."),
      count: z.int().min(1).max(1_000).default(20).describe("Slots at most."),
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
    touches: "task",
    method: "GET",
    path: "/v1/tasks/{task}/slots",
    noun,
    policy: "viewer",
    params,
    summary: "What came of past slots, newest first, and what was missed or skipped as ranges; also of a removed task",
    query: z.strictObject({
      ...paged,
      since: time.optional().describe("Only slots at or after this time."),
      until: time.optional().describe("Only slots before this time."),
    }),
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
    touches: "task",
    method: "POST",
    path: "/v1/tasks/{task}/payload",
    noun,
    policy: "viewer",
    params,
    asks: true,
    summary: "What a task's payload schema has against a payload, and where; changes nothing",
    body: z.strictObject({ payload: json.describe("The payload to check: any JSON.") }),
    answer: z.strictObject({
      checked: z.boolean().describe("false: it has no schema, or one that only its handler can check."),
      issues: z.array(z.strictObject({ path: z.array(z.union([z.string(), z.int()])), message: z.string() })),
    }),
    errors: unknown,
  }),
  createTask: route({
    touches: "task",
    method: "PUT",
    path: "/v1/tasks/{task}",
    noun,
    policy: "editor",
    params,
    etag: "gives",
    status: 201,
    makes: { readBy: "getTask", places: { task: "name" } },
    summary: "Define a task that no code stands behind, such as a command or a URL to call",
    body: z.strictObject({ options: taskOptions, reason }),
    answer: task,
    errors: [...unknown, ...invalidTask, "TASK_NAME_TAKEN"],
  }),
  defineTask: route({
    touches: "task",
    method: "PUT",
    path: "/v1/tasks/{task}/definition",
    noun,
    policy: "editor",
    params,
    etag: "demands",
    summary:
      "Say anew what defines a task, as code would: what was edited by hand stays. From version 0: there is none",
    body: z.strictObject({ options: taskOptions, reason }),
    answer: changed,
    errors: [...unknown, ...invalidTask, "TASK_STALE", "PRECONDITION_NEEDED"],
  }),
  editTask: route({
    touches: "task",
    method: "PATCH",
    path: "/v1/tasks/{task}",
    noun,
    policy: "editor",
    params,
    etag: "demands",
    summary: "Edit parts of a task; they stay so when its code is started again",
    body: z.strictObject({ options: taskOptions, reason }),
    answer: changed,
    errors: [...unknown, ...invalidTask, "TASK_STALE", "PRECONDITION_NEEDED"],
  }),
  revertTask: route({
    touches: "task",
    method: "POST",
    path: "/v1/tasks/{task}/revert",
    noun,
    policy: "editor",
    params,
    etag: "demands",
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
    touches: "task",
    method: "DELETE",
    path: "/v1/tasks/{task}",
    noun,
    policy: "editor",
    params,
    etag: "heeds",
    summary: "Remove a task and its schedules: nothing of them is planned or started again, their history stays",
    query: z.strictObject({ reason }),
    answer: null,
    errors: [...unknown, "TASK_STALE"],
  }),
  pauseTask: route({
    touches: "task",
    method: "POST",
    path: "/v1/tasks/{task}/pause",
    noun,
    policy: "operator",
    params,
    summary: "Stop firing a task; answered when nothing of it that had not started can start any more",
    body: z.strictObject({
      reason,
      until: time.optional().describe("When it is resumed by itself. Default: not before it is resumed."),
    }),
    answer: z.strictObject({
      name: taskName,
      paused: z.boolean(),
      running: z.array(id).describe("Runs that go on."),
      held: z
        .int()
        .describe("Waiting runs that stay until the task is resumed: enqueued ones, and those of a backfill."),
      skipped: z.int().describe("Slots that had come due and waited for a place, now skipped."),
    }),
    errors: [...unknown, "OPTION_INVALID"],
  }),
  resumeTask: route({
    touches: "task",
    method: "POST",
    path: "/v1/tasks/{task}/resume",
    noun,
    policy: "operator",
    params,
    summary: "Let a paused task fire again, from now on",
    body: z.strictObject({ reason }),
    answer: z.strictObject({ name: taskName, paused: z.boolean(), next: maybeTime }),
    errors: unknown,
  }),
} as const;
