import { z } from "zod";
import { limits } from "../../base/limits.ts";
import { namespaceLength } from "../../base/namespace.ts";
import { eventTypes, runEventTypes } from "../../store/event-store.ts";
import { id, json, maybeTime, name, reason, route, taskName, text, time } from "./route.ts";

const consumer = z
  .strictObject({
    name: z.string(),
    place: maybeTime.describe("Up to when it has handled events; null: it gets the audit log, whose places are rows."),
    until: time.describe("It is forgotten then, unless a process serves it."),
    failing: z
      .strictObject({
        type: z.enum(eventTypes),
        run: id.nullable().describe("null: the event is about no run."),
        task: taskName.nullable().describe("null: the event is about no task."),
        time: maybeTime
          .default(null)
          .describe(
            "The event's own time, as its receiver gets it; null: a process of an older version recorded the failure.",
          ),
        attempt: z.int(),
        error: z.string(),
        at: time.describe("When the attempt failed."),
        again: time.describe("When it gets the event again."),
      })
      .nullable()
      .describe("The event that it has failed to handle, and for which later ones wait; null: none."),
  })
  .meta({ id: "EventConsumer" });

export const eventRoutes = {
  listEventConsumers: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/event-consumers",
    noun: "runs",
    policy: "viewer",
    summary: "Named consumers of events, webhooks of events among them: how far each is, and which delivery fails",
    answer: z.strictObject({ consumers: z.array(consumer).describe("By name.") }),
    errors: [],
  }),
  redeliverEvents: route({
    touches: "cluster",
    method: "POST",
    path: "/v1/event-consumers/{consumer}/redeliver",
    noun: "runs",
    policy: "operator",
    summary: "Deliver again: from the failing event on, or the retained events since a time, handled or not",
    params: z.strictObject({ consumer: name(limits.lockNameLength).describe("webhook/NAME is the webhook NAME.") }),
    body: z.strictObject({
      since: time
        .optional()
        .describe(
          "Not in the future. Later than the failing event, too: then it and others before this time are left out. Default: from the failing event on; what was handled does not come again.",
        ),
      reason,
    }),
    answer: consumer,
    errors: ["CONSUMER_UNKNOWN", "OPTION_INVALID"],
  }),
  followRunEvents: route({
    touches: "listed",
    method: "GET",
    path: "/v1/events/runs",
    noun: "runs",
    policy: "viewer",
    summary: "What becomes of runs in the whole cluster, each event at least once, in the order of commits",
    query: z.strictObject({
      type: z
        .array(z.enum(runEventTypes))
        .max(runEventTypes.length)
        .optional()
        .describe("Only these events. Default: all."),
      task: taskName.optional().describe("Only of runs of this task."),
      namespace: name(namespaceLength).optional().describe("Only of runs of the tasks in this namespace."),
      after: text(8_000)
        .optional()
        .describe("An event's id (also Last-Event-ID): the events behind it. Default: those from now on."),
    }),
    event: z.discriminatedUnion("type", [
      z
        .strictObject({ type: z.literal("listening").describe("The first: no event behind it is missed.") })
        .meta({ id: "Listening" }),
      z
        .strictObject({
          type: z.enum(runEventTypes),
          run: id,
          task: taskName,
          attempt: z.int(),
          at: time.describe("When the run, or the try, ended."),
          slot: maybeTime,
          key: z.string().nullable(),
          result: json.describe("Of a run that succeeded."),
          error: json.describe("Of all others."),
        })
        .meta({ id: "RunEvent" }),
    ]),
    errors: ["CURSOR_GONE", "OPTION_INVALID", "SERVER_BUSY", "STREAMS_TAKEN"],
  }),
} as const;
