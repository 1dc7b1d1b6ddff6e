import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** Read before this process is pinned to one core, because afterwards the system reports only that one. */
const cores = availableParallelism();

/**
 * Pins a process with all its threads to one core by `taskset`; has no effect where that is missing. A player and the PostgreSQL
 * processes of its connections take turns. On two cores each turn would have to wake the other core, which takes longer than most
 * statements.
 * @param player any number: cores are assigned round-robin
 */
export function keepOnCore(player: number, pid: number): void {
  spawnSync("taskset", ["-apc", String(player % cores), String(pid)], { stdio: "ignore" });
}
