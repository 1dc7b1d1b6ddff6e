import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** The number of cores, read before this process is pinned to one of them, because afterwards the system reports only one. */
const cores = availableParallelism();

/**
 * Pins a process with all its threads to one core by `taskset`; has no effect if `taskset` is missing. A player and the PostgreSQL
 * processes of its connections take turns; on two cores, each turn would have to wake the other core.
 */
export function keepOnCore(player: number, pid: number): void {
  spawnSync("taskset", ["-apc", String(player % cores), String(pid)], { stdio: "ignore" });
}
