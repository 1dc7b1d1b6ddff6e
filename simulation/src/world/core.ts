import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** Counted before this process is pinned to one core: from then on the system reports one. */
const cores = availableParallelism();

/**
 * Pins a process, with all its threads, to one core, where Linux' taskset may do so; elsewhere nothing happens, and it is only slower. A
 * player and the server's processes of its connections take turns: on two cores each turn costs a wake-up of the other core, which takes
 * longer than most statements.
 * @param player any number: cores are assigned in turn
 */
export function keepOnCore(player: number, pid: number): void {
  spawnSync("taskset", ["-apc", String(player % cores), String(pid)], { stdio: "ignore" });
}
