/** A thread of a host process: ends the host when its worker process is gone, even while a handler computes without pause. */
import { workerData } from "node:worker_threads";
import { machineClock, pause } from "../../base/clock.ts";

const lookEveryMs = 250;
const parent = workerData as number;

function isGone(): boolean {
  // After the parent's death this process has another parent; on systems that keep the parent's pid, no process has that pid any more.
  if (process.ppid !== parent) return true;
  try {
    return !process.kill(parent, 0);
  } catch (error) {
    return (error as { code?: unknown }).code === "ESRCH";
  }
}

while (!isGone()) await pause(machineClock, lookEveryMs);
process.kill(process.pid, "SIGKILL");
