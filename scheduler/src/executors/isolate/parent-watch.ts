/** The main module of a thread that ends its host process when the worker process has ended, even if a handler computes without a pause. */
import { workerData } from "node:worker_threads";
import { machineClock, pause } from "../../base/clock.ts";

const lookEveryMs = 250;
const parent = workerData as number;

function isGone(): boolean {
  // After the parent's end, this process gets another parent; on systems that keep the parent's pid, no process with that pid exists.
  if (process.ppid !== parent) return true;
  try {
    return !process.kill(parent, 0);
  } catch (error) {
    return (error as { code?: unknown }).code === "ESRCH";
  }
}

while (!isGone()) await pause(machineClock, lookEveryMs);
process.kill(process.pid, "SIGKILL");
