/** A thread of a host process: ends the host when the process that it works for is gone, also while a handler computes without a pause. */
import { workerData } from "node:worker_threads";
import { machineClock, pause } from "../../base/clock.ts";

const lookEveryMs = 250;
const parent = workerData as number;

function isGone(): boolean {
  // After the parent's death another process has become the parent; on systems that keep the pid, no process has it.
  if (process.ppid !== parent) return true;
  try {
    return !process.kill(parent, 0);
  } catch (error) {
    return (error as { code?: unknown }).code === "ESRCH";
  }
}

while (!isGone()) await pause(machineClock, lookEveryMs);
process.kill(process.pid, "SIGKILL");
