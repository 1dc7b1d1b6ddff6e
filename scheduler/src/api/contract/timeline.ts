import { z } from "zod";
import { limits } from "../../base/limits.ts";
import { namespaceLength } from "../../base/namespace.ts";
import { id, json, name, route, taskName, text, time } from "./route.ts";
import { runLabel } from "./runs.ts";

const noun = "tasks" as const;

const whose = {
  days: z.int().min(1).max(limits.timelineDays).default(7).describe("How many days ahead."),
  matching: name(limits.taskNameLength).optional().describe("* stands for any text, ? for one character."),
  group: name(limits.groupNameLength).optional().describe("Only tasks of this group."),
  namespace: name(namespaceLength).optional().describe("Only tasks in this namespace."),
};
const counts = z.array(z.int());

export const timelineRoutes = {
  getTimeline: route({
    touches: "listed",
    method: "GET",
    path: "/v1/timeline",
    noun,
    policy: "viewer",
    summary: "How much becomes due in each minute of the days to come, told from the definitions",
    query: z.strictObject(whose),
    answer: z.strictObject({
      from: time.describe("The first minute's begin."),
      fires: counts.describe("Runs that become due, of each minute."),
      tasks: counts.describe("Tasks that they are of."),
      foretold: z.int(),
      paused: z.int(),
      unforeseen: z.int().describe("Tasks whose times depend on runs or people, or which the node cannot read."),
      left: z.int().describe("Tasks that fire too often to be counted in one answer."),
      clockChanges: z.array(
        z.strictObject({
          at: time,
          zone: z.string(),
          byMinutes: z.number().describe("Above 0: clocks go forward."),
          tasks: z.int().describe("That fire by this zone's clocks."),
        }),
      ),
    }),
    errors: [],
  }),
  listFiring: route({
    touches: "listed",
    method: "GET",
    path: "/v1/timeline/tasks",
    noun,
    policy: "viewer",
    summary: "Which tasks fire in a span of the timeline, the first to fire first",
    query: z.strictObject({
      ...whose,
      since: time.describe("The start of the span."),
      until: time.describe("The end of the span; it is not a part of it."),
    }),
    answer: z.strictObject({
      firing: z
        .array(
          z.strictObject({
            task: taskName,
            group: z.string(),
            schedule: json,
            words: z.string(),
            fires: z.int(),
            first: time,
          }),
        )
        .max(limits.timelineTasks),
      more: z.int().describe("Tasks beyond those."),
    }),
    errors: [],
  }),
  getCalendarFeed: route({
    touches: "listed",
    method: "GET",
    path: "/v1/timeline/calendar.ics",
    noun: "feed",
    policy: "viewer",
    media: "text/calendar",
    tokenInUrl: true,
    summary: "What fires in the days to come, as a calendar (iCalendar, RFC 5545) to subscribe to",
    query: z.strictObject({
      ...whose,
      days: z.int().min(1).max(limits.feedDays).default(30).describe("How many days ahead."),
      label: runLabel.describe("Only tasks whose runLabels have these labels, each as name:value."),
      perDay: z
        .int()
        .min(1)
        .max(288)
        .default(24)
        .describe("Tasks that fire more often than that in a day, on average, share one event a day."),
      token: text(200).optional().describe("A token for feed:read alone, from clients that cannot send headers."),
    }),
    answer: z.string(),
    errors: ["OPTION_INVALID"],
  }),
  suggestSpread: route({
    touches: "listed",
    method: "GET",
    path: "/v1/timeline/spread",
    noun,
    policy: "viewer",
    summary:
      "Which crons to set some minutes later so that fewer runs meet in one minute, and what jitter would do instead",
    query: z.strictObject({
      ...whose,
      within: z.int().min(1).max(59).default(10).describe("Minutes later at most."),
      moves: z.int().min(1).max(100).default(20).describe("Suggestions at most."),
    }),
    answer: z.strictObject({
      peak: z.strictObject({ before: z.int(), after: z.int() }).describe("The most that becomes due in one minute."),
      fuller: z.int().describe("Minutes that are fuller now than the fullest would be then."),
      moves: z.array(
        z.strictObject({
          task: taskName,
          version: id,
          minutes: z.int().describe("Later."),
          expression: z.string(),
          becomes: z.string(),
        }),
      ),
      jitter: z
        .array(z.strictObject({ minutes: z.int(), peak: z.number() }))
        .describe(
          "Instead: every cron that could be moved is due up to so much later; the most of one minute on average.",
        ),
    }),
    errors: [],
  }),
} as const;
