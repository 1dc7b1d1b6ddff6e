/**
 * What a process had of processors, and how long a thread stood ready and had none. On a machine that does other things, what is slow
 * by the clock may have waited for its turn alone; Linux counts that wait, and elsewhere it cannot be told.
 */
import { readFileSync } from "node:fs";

/** @param pid of whose first thread, on which JavaScript runs; default this process @returns ms since it began; 0 where it cannot be told */
export function waitedMs(pid: number | "self" = "self"): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    // No Linux, or the process is gone: then the clock counts, as it would without this.
    return 0;
  }
}

/** A watch that stands still while this thread has no processor. @returns ms so far */
export function watch(): () => number {
  const [began, waited] = [performance.now(), waitedMs()];
  return () => performance.now() - began - (waitedMs() - waited);
}

/** What this process had of processors since it began, all its threads together. */
export function spentMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
