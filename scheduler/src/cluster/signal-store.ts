export type Signal =
  | { kind: "ready"; dueMs: number }
  /** A held run must be judged then, or a token comes; or a task comes after fewer than before. */
  | { kind: "held"; dueMs: number }
  /** A child of this run has ended that no worker had: it may have been the last that a join waits for. */
  | { kind: "child"; parentId: number }
  /** A run is to be addressed. */
  | { kind: "direct"; dueMs: number }
  /** Runs were addressed to this session. */
  | { kind: "directed"; sessionId: number; dueMs: number }
  | { kind: "recall" }
  /** Tasks were made, edited, paused, resumed or removed. */
  | { kind: "tasks" }
  /** A slot is open that was not before: the next of a fixed delay, whose run has ended. */
  | { kind: "plans" }
  /** A task with `pauseAfter` had a run that failed. */
  | { kind: "failing"; taskId: number }
  /** These runs have ended, for whose end somebody waits. */
  | { kind: "ended"; runIds: number[] }
  /** An operation was begun or stopped. */
  | { kind: "operations" }
  | { kind: "leadership" }
  /** Of a leader that relies on the store: what is told at once is noticed at once when it stops. */
  | { kind: "beat"; sessionId: number; beat: number }
  /** The coordination service does not show this session: its process is to beat at once, if it lives. */
  | { kind: "prompt"; sessionId: number }
  /** Whoever has this token in a lock's line holds the lock now. */
  | { kind: "lock"; token: string }
  /** This worker key was revoked. */
  | { kind: "revoked"; keyId: number }
  /** Signals may have been lost: look at everything. */
  | { kind: "resync" };

export interface SignalStore {
  /** Calls back until `signal` aborts. Signals hint; they may be lost, doubled or late. */
  listen(listener: (signal: Signal) => void, signal: AbortSignal): Promise<void>;
}
