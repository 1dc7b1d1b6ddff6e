/**
 * One example of a request and its answer for each route, in an order that can be executed from an empty cluster. The OpenAPI page shows
 * the examples; a test executes them against a server, so that each of them is correct.
 */
import type { RouteId } from "./contract.ts";
import { accessExamples } from "./examples/access.ts";
import { alarmExamples } from "./examples/alarms.ts";
import { beginExamples } from "./examples/begin.ts";
import { clusterExamples } from "./examples/cluster.ts";
import type { Example } from "./examples/example.ts";
import { runExamples } from "./examples/runs.ts";
import { taskExamples } from "./examples/tasks.ts";

export const examples: Readonly<Partial<Record<RouteId, Example>>> = {
  ...beginExamples,
  ...taskExamples,
  ...runExamples,
  ...clusterExamples,
  ...alarmExamples,
  ...accessExamples,
};
