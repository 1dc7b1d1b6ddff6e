import type { Worker, WorkerGroup } from "./answers.ts";

type Place = Pick<Worker, "groups" | "silent" | "draining" | "capacity">;

/**
 * Returns how many runs of the group can go on at once: the capacity of its workers that are given runs, or its limit if that is less.
 * Null: one of the workers does not report its capacity, and there is no limit.
 */
export function roomOf({ name, limit }: Pick<WorkerGroup, "name" | "limit">, workers: readonly Place[]): number | null {
  const serving = workers.filter(({ groups, silent, draining }) => groups.includes(name) && !silent && !draining);
  if (serving.some(({ capacity }) => capacity === null)) return limit;
  const capacity = serving.reduce((sum, worker) => sum + (worker.capacity ?? 0), 0);
  return limit === null ? capacity : Math.min(limit, capacity);
}
