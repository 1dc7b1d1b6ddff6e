import { z } from "zod";
import { namespaceLength } from "../../base/namespace.ts";
import { eventTypes } from "../../store/event-store.ts";
import { id, json, maybeTime, name, route, taskName, text, time } from "./route.ts";

export const eventRoutes = {
  followRunEvents: route({
    touches: "listed",
    method: "GET",
    path: "/v1/events/runs",
    noun: "runs",
    policy: "viewer",
    summary: "What becomes of runs in the whole cluster, each event at least once, in the order of commits",
    query: z.strictObject({
      type: z.array(z.enum(eventTypes)).max(eventTypes.length).optional().describe("Only these events. Default: all."),
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
          type: z.enum(eventTypes),
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
