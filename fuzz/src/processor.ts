/**
 * CPU time of a process, and how long a thread was ready without a processor. On a machine with other work, slowness by the clock may be
 * such a wait alone; Linux measures that wait, other systems do not.
 */
import { readFileSync } from "node:fs";

/**
 * @param pid the process; its first thread, on which JavaScript runs, is measured; default this process @returns ms since it began; 0 if
 * unknown
 */
export function waitedMs(pid: number | "self" = "self"): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    // Not Linux, or the process is gone: then the clock counts, as it would without this.
    return 0;
  }
}

/** A stopwatch that stops while this thread has no processor. @returns ms so far */
export function watch(): () => number {
  const [began, waited] = [performance.now(), waitedMs()];
  return () => performance.now() - began - (waitedMs() - waited);
}

/** CPU time of this process since it began, of all its threads together. */
export function spentMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
