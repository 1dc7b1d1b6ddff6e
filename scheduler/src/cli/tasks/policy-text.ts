import { formatDuration } from "../../base/duration.ts";
import type { Follower } from "../../run/flow.ts";
import type { RunRecord } from "../../run/run-record.ts";
import type { AfterSpec } from "../../task/after.ts";
import type { TaskDefinition } from "../../task/task.ts";

/** Describes which workers may run the task; "" if any worker of the group may. */
export function routeText({ route, labels }: { [Part in "route" | "labels"]?: TaskDefinition[Part] | null }): string {
  const only = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`);
  const words = [
    route == null
      ? ""
      : route.by === "pin"
        ? `pinned to ${route.node}`
        : route.by === "shards"
          ? `${route.shards} shards`
          : route.by === "hash"
            ? "hash of the key"
            : route.by,
    only.length === 0 ? "" : `workers with ${only.join(", ")}`,
  ];
  return words.filter((word) => word !== "").join(", ");
}

const endWords = { success: "has succeeded", failure: "has failed", any: "has ended" } as const;

/** Describes the upstream tasks. If there are several, each must have ended in the way `on` for the same slot. */
export const afterText = ({ tasks, on }: AfterSpec): string =>
  tasks.length === 1 ? `${tasks[0]} ${endWords[on]}` : `each of ${tasks.join(", ")} ${endWords[on]}`;

/** Describes a task that runs after this task. */
export const followerText = ({ task, on, with: others }: Follower): string =>
  `${task}, once it ${endWords[on]}${others.length === 0 ? "" : ` and so ${others.length === 1 ? "has" : "have"} ${others.join(", ")}`}`;

/** Describes the limits on concurrency and rate, without the overlap policy; "" if there are no such limits. */
export function limitsText({ limit, rate }: TaskDefinition): string {
  return [
    limit?.perKey == null ? "" : `at most ${limit.perKey} at once of a key`,
    limit?.perWorker == null ? "" : `at most ${limit.perWorker} at once on a worker`,
    rate ? `${rate.limit} in ${formatDuration(rate.perMs)}${rate.byKey ? " of each key" : ""}` : "",
  ]
    .filter((word) => word !== "")
    .join("; ");
}

/** Describes the run's addressee, its shard and its limit key; "" if the run has none of them. */
export function directionText({ addressee, shard, limitKey }: RunRecord): string {
  return [
    addressee == null ? "" : `addressed to ${addressee}`,
    shard ? `part ${shard[0] + 1} of ${shard[1]}` : "",
    // The limit key of a broadcast's run is the name of its worker, which is shown already as the addressee.
    limitKey && !shard ? `limited as ${limitKey}` : "",
  ]
    .filter((word) => word !== "")
    .join(", ");
}
