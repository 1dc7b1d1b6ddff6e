/** MCP tools that only read: one for each route of the API that is offered as a tool, and one that summarises the cluster. */
import { z } from "zod";
import type { Client } from "../../api/client.ts";
import type { Answer, RouteId, StreamId } from "../../api/contract.ts";
import { shapeOf } from "../../api/contract.ts";
import { limits } from "../../base/limits.ts";
import { unlessDenied } from "../cluster/calls.ts";
import { fittingPage } from "./bounded.ts";
import { answerOf, inputOf, readingTool, type Tool } from "./tool.ts";

interface RouteTool<Id extends RouteId> {
  name: string;
  title: string;
  routeId: Id;
  /** Text that is added to the route's summary in the tool's description. */
  more?: string;
  input?: z.ZodObject;
  says: (answer: Answer<Id>) => string;
}

function routeTool<Id extends Exclude<RouteId, StreamId>>(given: RouteTool<Id>): Tool {
  const { name, title, routeId, more, says } = given;
  const { summary } = shapeOf(routeId);
  return readingTool({
    name,
    title,
    description: more === undefined ? `${summary}.` : `${summary}. ${more}`,
    input: given.input ?? inputOf(routeId),
    output: answerOf(routeId),
    async call(given, { api }) {
      const read = api[routeId] as unknown as (given: object) => Promise<Answer<Id> & object>;
      const answer = "limit" in given ? await fittingPage(read, given) : await read(given);
      return { answer, says: says(answer) };
    },
  });
}

const counted = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

const pageSays =
  (one: string, many?: string) =>
  ({ items, next }: { items: unknown[]; next: string | null }) =>
    `${counted(items.length, one, many)}${next === null ? "" : "; there are more: give `next` as `cursor`"}.`;

const slots = inputOf("listUpcomingSlots").extend({ count: z.int().min(1).max(limits.mcpSlots).default(20) });

export const readTools: readonly Tool[] = [
  routeTool({ name: "list_tasks", title: "List tasks", routeId: "listTasks", says: pageSays("task") }),
  routeTool({
    name: "get_task",
    title: "Show a task",
    routeId: "getTask",
    says: ({ version, paused, next }) =>
      `Version ${version}, ${paused === null ? "not paused" : "paused"}, ${next === null ? "no slot to come" : `next slot ${next}`}.`,
  }),
  routeTool({
    name: "next_slots",
    title: "Next slots of a task",
    routeId: "listUpcomingSlots",
    input: slots,
    says: ({ slots, paused }) => `${counted(slots.length, "slot")} to come${paused ? "; the task is paused" : ""}.`,
  }),
  routeTool({
    name: "past_slots",
    title: "Past slots of a task",
    routeId: "listSlots",
    says: ({ items, next, ranges }) =>
      `${pageSays("slot")({ items, next })} ${counted(ranges.length, "range")} of missed or skipped slots.`,
  }),
  routeTool({
    name: "list_runs",
    title: "List runs",
    routeId: "listRuns",
    more: "For the cause of a state see explain_run.",
    says: pageSays("run"),
  }),
  routeTool({
    name: "get_run",
    title: "Show a run",
    routeId: "getRun",
    says: ({ run, state, attempt }) => `Run ${run} is ${state}, attempt ${attempt}.`,
  }),
  routeTool({ name: "run_logs", title: "Log of a run", routeId: "listLogs", says: pageSays("line") }),
  routeTool({ name: "list_alarms", title: "List open alarms", routeId: "listAlarms", says: pageSays("open alarm") }),
  routeTool({
    name: "dead_letters",
    title: "Dead letters by reason",
    routeId: "listDeadGroups",
    says: ({ total }) => `${counted(total.letters, "open dead letter")} in ${counted(total.groups, "group")}.`,
  }),
  routeTool({
    name: "list_firing",
    title: "Tasks that fire in a span of time",
    routeId: "listFiring",
    says: ({ firing, more }) =>
      `${counted(firing.length, "task")} fire${firing.length === 1 ? "s" : ""}; ${more} more are not listed.`,
  }),
  routeTool({
    name: "check_payload",
    title: "Check a payload",
    routeId: "checkPayload",
    says: ({ checked, issues }) =>
      checked ? `${counted(issues.length, "issue")}.` : "The task has no schema to check by.",
  }),
  readingTool({
    name: "cluster",
    title: "Show the cluster",
    description: `Who leads, and the first ${limits.mcpPageItems} nodes, workers and groups, each with its state. nodes is null for a token that holds in some namespaces only.`,
    input: z.strictObject({}),
    output: z.strictObject({
      cluster: answerOf("getCluster"),
      nodes: answerOf("listNodes").nullable(),
      workers: answerOf("listWorkers"),
      groups: answerOf("listGroups"),
    }),
    async call(_, { api }) {
      const answer = await wholeCluster(api);
      const { cluster, nodes, workers } = answer;
      const led = cluster.leader === null ? "No node leads" : "A node leads";
      const seen = nodes === null ? "" : ` ${counted(nodes.items.length, "node")},`;
      return { answer, says: `${led};${seen} ${counted(workers.items.length, "worker")}.` };
    },
  }),
];

async function wholeCluster(api: Client) {
  const page = { limit: limits.mcpPageItems };
  const [cluster, nodes, workers, groups] = await Promise.all([
    api.getCluster(),
    unlessDenied<Answer<"listNodes"> | null>(api.listNodes(page), null),
    api.listWorkers(page),
    api.listGroups(page),
  ]);
  return { cluster, nodes, workers, groups };
}
