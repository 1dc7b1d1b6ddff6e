import { z } from "zod";
import { limits } from "../../base/limits.ts";
import { operation } from "./operations.ts";
import { id, maybeTime, name, page, paged, reason, route, spanMs, taskName, texts, time } from "./route.ts";
import { runSummary } from "./runs.ts";

const member = {
  sessionId: id,
  node: z.string(),
  role: z.enum(["node", "worker"]),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  timeoutMs: z.int(),
  groups: z.array(z.string()),
  labels: texts,
  capacity: z.int().nullable(),
  address: z.string().nullable().describe("Where the others reach it."),
  observer: z.boolean(),
  release: z.string().nullable().describe("Whose definitions it brings; null: it brings none, or is too old to say."),
  reliesOn: z.enum(["store", "service"]),
  started: time,
  seen: time,
  silent: z.boolean().describe("Its beat stood still for longer than its timeout."),
  stillMs: spanMs
    .nullable()
    .describe("For so long its event loop has stood still, while a thread of it keeps its session; null: it turns."),
  tasks: z
    .array(z.string())
    .nullable()
    .describe("That it has handlers for, of a worker that said so; null: any of its groups."),
  draining: z.boolean().describe("It takes no more runs: an operator has drained it, or it stops."),
  settings: z
    .looseObject({ retentionMs: spanMs, horizonMs: spanMs, claimAheadMs: spanMs })
    .nullable()
    .describe("That must agree with those of others, as far as it told them."),
};

const term = z
  .strictObject({
    term: id,
    node: z.string(),
    sessionId: id,
    elected: time,
    ended: maybeTime,
    endedWhy: z.string().nullable(),
  })
  .meta({ id: "Term" });

const noun = "cluster" as const;

const ofNode = z.strictObject({ node: name(limits.nodeNameLength).describe("The name of a node or worker.") });

const holds = {
  held: z.int().nullable().describe("Runs that its process still has; null: no process has the name now."),
  runs: z
    .array(z.strictObject({ run: id, task: z.string(), started: maybeTime }))
    .describe("Of these, those that it has had for longest."),
};

export const clusterRoutes = {
  getCluster: route({
    touches: "nothing",
    method: "GET",
    path: "/v1/cluster",
    noun,
    policy: "viewer",
    summary: "Whose store this is, who leads, and by what the nodes coordinate",
    answer: z.strictObject({
      cluster: z.string(),
      version: z.string().describe("Of the node that answers."),
      node: z.string().describe("The one that answers."),
      now: time.describe("The store's clock."),
      term: z.int(),
      leader: z.strictObject({ node: z.string(), since: time }).nullable(),
      coordination: z.string().nullable(),
    }),
    errors: [],
  }),
  listNodes: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/nodes",
    noun,
    policy: "viewer",
    summary: "Scheduler nodes that live, by name",
    query: z.strictObject(paged),
    answer: page(z.strictObject({ ...member, leads: z.boolean() }).meta({ id: "Node" })),
    errors: [],
  }),
  listWorkers: route({
    touches: "listed",
    method: "GET",
    path: "/v1/workers",
    noun,
    policy: "viewer",
    summary: "Processes that run tasks, by name, with how much they have",
    query: z.strictObject({ ...paged, group: name(100).optional().describe("Only workers of this group.") }),
    answer: page(z.strictObject({ ...member, held: z.int().describe("Claims that it has.") }).meta({ id: "Worker" })),
    errors: [],
  }),
  listLostWorkers: route({
    touches: "listed",
    method: "GET",
    path: "/v1/lost-workers",
    noun,
    policy: "viewer",
    summary:
      "Workers that fell silent in the last 24 hours, whose names no process has now, the latest first; 100 at most",
    query: z.strictObject({}),
    answer: z.strictObject({
      lost: z.array(
        z
          .strictObject({
            node: z.string(),
            role: z.enum(["node", "worker"]),
            host: z.string(),
            pid: z.int(),
            groups: z.array(z.string()),
            started: time,
            seen: time.describe("Its last heartbeat."),
            ended: time.describe("When its session was ended, and its runs went to others."),
            why: z.string().describe("How it was found, and by which node."),
          })
          .meta({ id: "LostWorker" }),
      ),
    }),
    errors: [],
  }),
  listDrained: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/drained",
    noun,
    policy: "viewer",
    summary: "Nodes that an operator has drained, by name",
    query: z.strictObject(paged),
    answer: page(
      z
        .strictObject({
          node: z.string(),
          since: time,
          by: z.string(),
          why: z.string(),
          ...holds,
        })
        .meta({ id: "DrainedNode" }),
    ),
    errors: [],
  }),
  drainNode: route({
    touches: "cluster",
    method: "POST",
    path: "/v1/nodes/{node}/drain",
    noun,
    policy: "operator",
    summary: "Give this node or worker no more runs, also after a restart; what it has begun it ends",
    params: ofNode,
    body: z.strictObject({ reason }),
    answer: z.strictObject({
      node: z.string(),
      changed: z.boolean().describe("False: it was drained already."),
      ...holds,
    }),
    errors: ["NODE_UNKNOWN"],
  }),
  resumeNode: route({
    touches: "cluster",
    method: "POST",
    path: "/v1/nodes/{node}/resume",
    noun,
    policy: "operator",
    summary: "Give this node or worker runs again",
    params: ofNode,
    body: z.strictObject({ reason }),
    answer: z.strictObject({ node: z.string(), changed: z.boolean().describe("False: it was not drained.") }),
    errors: ["NODE_UNKNOWN"],
  }),
  listGroups: route({
    touches: "listed",
    method: "GET",
    path: "/v1/groups",
    noun,
    policy: "viewer",
    summary: "Groups of workers, by name, with what each has to do",
    query: z.strictObject(paged),
    answer: page(
      z
        .strictObject({
          name: z.string(),
          tasks: z.int(),
          workers: z.int().describe("That live and serve it."),
          limit: z.int().nullable().describe("Runs of it at once, on all workers together."),
          claimed: z.int(),
          waiting: z.int().describe("Due, and nobody has them; counted up to 1000."),
          changed: z.strictObject({ at: time, by: z.string(), why: z.string() }).nullable(),
        })
        .meta({ id: "Group" }),
    ),
    errors: [],
  }),
  limitGroup: route({
    touches: "group",
    method: "PUT",
    path: "/v1/groups/{group}/limit",
    noun,
    policy: "operator",
    summary: "Run at most so many of a group at once; null: no limit",
    params: z.strictObject({ group: name(100).describe("The group's name.") }),
    body: z.strictObject({
      limit: z.int().nullable().describe("Runs of it at once, on all workers together; null: no limit."),
      reason,
    }),
    answer: z.strictObject({ group: z.string(), limit: z.int().nullable(), changed: z.boolean() }),
    errors: ["GROUP_UNKNOWN", "OPTION_INVALID"],
  }),
  listTerms: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/terms",
    noun,
    policy: "viewer",
    summary: "Who led when, and why that ended; newest first",
    query: z.strictObject(paged),
    answer: page(term),
    errors: [],
  }),
  search: route({
    touches: "listed",
    method: "GET",
    path: "/v1/search",
    noun,
    policy: "viewer",
    summary: "Tasks, runs, operations, workers and calendars that a text names",
    query: z.strictObject({ q: name(200).describe("A part of a name, or the number of a run or an operation.") }),
    answer: z.strictObject({
      tasks: z.array(z.strictObject({ name: taskName, group: z.string() })),
      runs: z.array(runSummary).describe("By number."),
      operations: z.array(operation).describe("By number."),
      workers: z.array(z.strictObject({ node: z.string(), role: z.enum(["node", "worker"]) })),
      calendars: z.array(z.string()),
    }),
    errors: [],
  }),
  followEvents: route({
    touches: "listed",
    method: "GET",
    path: "/v1/events",
    noun,
    policy: "viewer",
    summary: "What happens, as it happens. A hint may be lost, doubled or late: read what it is about",
    query: z.strictObject({ task: taskName.optional().describe("Only runs of this task.") }),
    event: z.discriminatedUnion("type", [
      z.strictObject({ type: z.literal("ended"), run: runSummary }).meta({ id: "RunEnded" }),
      z
        .strictObject({
          type: z.literal("more"),
          ended: z.int().describe("So many ended at once that they are only counted."),
        })
        .meta({ id: "MoreEnded" }),
      z.strictObject({ type: z.enum(["tasks", "operations", "leadership", "resync"]) }).meta({ id: "Changed" }),
    ]),
    errors: ["SERVER_BUSY", "STREAMS_TAKEN"],
  }),
} as const;
