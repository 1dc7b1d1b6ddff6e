export type Signal =
  | { kind: "ready"; dueMs: number }
  /**
   * Held runs must be examined at `dueMs`, for example because one comes due, a rate limit admits another run, or a task was changed to
   * follow fewer tasks.
   */
  | { kind: "held"; dueMs: number }
  /** A child of this run ended without having been claimed. It may be the last child for which a join waits. */
  | { kind: "child"; parentId: number }
  /** A run that is due at `dueMs` needs an addressee. */
  | { kind: "direct"; dueMs: number }
  /** Runs were addressed to this session. */
  | { kind: "directed"; sessionId: number; dueMs: number }
  | { kind: "recall" }
  /** Tasks were created, edited, paused, resumed or removed. */
  | { kind: "tasks" }
  /** A fixed-delay task's run has ended, so the time of its next slot is known. */
  | { kind: "plans" }
  /** A run failed, and its task has the option `pauseAfter`. */
  | { kind: "failing"; taskId: number }
  /** These runs have ended, and callers wait for their end. */
  | { kind: "ended"; runIds: number[] }
  /** A bulk operation was begun or stopped. */
  | { kind: "operations" }
  | { kind: "leadership" }
  /**
   * A leader that relies on the store has sent a heartbeat. Each is signalled at once, so that its absence is noticed without
   * delay.
   */
  | { kind: "beat"; sessionId: number; beat: number }
  /** The coordination service does not report this session: if its process is alive, it must send a heartbeat at once. */
  | { kind: "prompt"; sessionId: number }
  /** This token in a lock's queue now holds a permit. */
  | { kind: "lock"; token: string }
  /** This worker key was revoked. */
  | { kind: "revoked"; keyId: number }
  /** Signals may have been lost, so the receiver must read everything again. */
  | { kind: "resync" };

export interface SignalStore {
  /** Calls the listener for each signal until the AbortSignal aborts. Signals are hints: they may be lost, duplicated or delayed. */
  listen(listener: (signal: Signal) => void, signal: AbortSignal): Promise<void>;
}
