/**
 * Measures the CPU time of a process, and how long a thread was runnable but waited for a CPU. On a busy machine an input may be slow only
 * because of such a wait. Linux measures the wait, other systems do not.
 */
import { readFileSync } from "node:fs";

/**
 * Returns for how many ms the process's main thread has waited for a CPU since its start; 0 if unknown.
 * @param pid the process; default: this process
 */
export function waitedMs(pid: number | "self" = "self"): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    // The system is not Linux, or the process has ended; then no wait is subtracted from the elapsed time.
    return 0;
  }
}

/** Starts a stopwatch that does not count the time in which this thread waits for a CPU. @returns a function that returns the ms so far */
export function watch(): () => number {
  const [began, waited] = [performance.now(), waitedMs()];
  return () => performance.now() - began - (waitedMs() - waited);
}

/** Returns the CPU time of this process since its start in ms, all threads together. */
export function spentMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
