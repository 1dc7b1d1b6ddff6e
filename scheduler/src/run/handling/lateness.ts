/**
 * A run that starts late has waited for two kinds of things: for its own policy (its task's or group's limit, a rate, a predecessor, a
 * pause, its own late enqueue), and then for a worker or for the scheduler. Only the second wait is lateness: it shows that something is
 * missing.
 */

interface Waited {
  dueMs: number;
  /** Absent or null: the run did not wait for its own policy. */
  readyMs?: number | null | undefined;
}

/** Since when the run has waited only for a worker or for the scheduler. */
export const readyMsOf = ({ dueMs, readyMs }: Waited): number => Math.max(dueMs, readyMs ?? dueMs);

/** How long the run waited for a worker or for the scheduler, in ms. @param startedMs when its first try started */
export const latenessMs = (run: Waited, startedMs: number): number => Math.max(0, startedMs - readyMsOf(run));

/** Receives each first try that starts: how long it waited for a worker or for the scheduler. */
export type OnStart = (task: string, runId: number, lateMs: number) => void;
