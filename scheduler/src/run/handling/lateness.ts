/**
 * Measures how late runs start. A run may first wait for a limit of its task or group, a rate, a preceding run, the end of a
 * pause, or its own late enqueue, and afterwards for a worker or for the scheduler. Only the second wait counts as lateness,
 * because it shows that capacity is missing.
 */

interface Waited {
  dueMs: number;
  /** Absent or null if the run waited only for a worker or for the scheduler. */
  readyMs?: number | null | undefined;
}

/** Returns the time since when the run has waited only for a worker or for the scheduler, in epoch ms. */
export const readyMsOf = ({ dueMs, readyMs }: Waited): number => Math.max(dueMs, readyMs ?? dueMs);

/** Returns how long the run waited for a worker or for the scheduler, in ms. @param startedMs when its first attempt started */
export const latenessMs = (run: Waited, startedMs: number): number => Math.max(0, startedMs - readyMsOf(run));

/** Called when the first attempt of a run starts. `lateMs` is how long it waited for a worker or for the scheduler. */
export type OnStart = (task: string, runId: number, lateMs: number) => void;
