/**
 * One example of a request and its answer for each route, in the order of a story that begins in an empty cluster. The OpenAPI page shows
 * the examples, and a test plays the story against a server, so that each of them is true.
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
