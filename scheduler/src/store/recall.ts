import { type Clock, pause } from "../base/clock.ts";
import type { RunStore } from "../run/run-store.ts";

const lookMs = 10;

/**
 * Waits until recalled runs are no longer open: each worker answers the recall at once, or its session and grace period end and the run is
 * reclaimed.
 * @returns the numbers of the runs that had started
 */
export async function awaitRecall(runs: RunStore, clock: Clock, runIds: number[]): Promise<number[]> {
  let open = runIds;
  while (open.length > 0) {
    open = await runs.recallsOpen(open);
    if (open.length > 0) await pause(clock, lookMs);
  }
  const records = await Promise.allSettled(runIds.map((runId) => runs.find(runId)));
  return records.flatMap((record) =>
    record.status === "fulfilled" && record.value.startedMs !== null ? [record.value.runId] : [],
  );
}
