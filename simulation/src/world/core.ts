import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** Counted before this process is kept on one itself: from then on it is told of one. */
const cores = availableParallelism();

/**
 * Keeps a process, with all its threads, on one core, where Linux' taskset may do so; elsewhere nothing happens, and it is
 * only slower. One who plays and the server's connections that it asks take turns: on two cores each turn costs a wake-up of
 * the other one, which takes longer than most statements.
 * @param player any number: players go by turns
 */
export function keepOnCore(player: number, pid: number): void {
  spawnSync("taskset", ["-apc", String(player % cores), String(pid)], { stdio: "ignore" });
}
