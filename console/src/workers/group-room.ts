import type { Worker, WorkerGroup } from "./answers.ts";

type Place = Pick<Worker, "groups" | "silent" | "draining" | "capacity">;

/**
 * Returns how many runs of the group can be in progress at once: the capacity of its workers that get runs, or its limit if that is less.
 * If one of these workers does not report its capacity, the limit alone counts; null means no limit.
 */
export function roomOf({ name, limit }: Pick<WorkerGroup, "name" | "limit">, workers: readonly Place[]): number | null {
  const serving = workers.filter(({ groups, silent, draining }) => groups.includes(name) && !silent && !draining);
  if (serving.some(({ capacity }) => capacity === null)) return limit;
  const capacity = serving.reduce((sum, worker) => sum + (worker.capacity ?? 0), 0);
  return limit === null ? capacity : Math.min(limit, capacity);
}
