export type Signal =
  | { kind: "ready"; dueMs: number }
  /** A held run must be judged at `dueMs`, or a token of a rate limit becomes available; or a task now follows fewer tasks than before. */
  | { kind: "held"; dueMs: number }
  /** A child of this run ended without a worker; it may be the last child that a join waits for. */
  | { kind: "child"; parentId: number }
  /** A run that is due at `dueMs` needs an addressee. */
  | { kind: "direct"; dueMs: number }
  /** Runs were addressed to this session. */
  | { kind: "directed"; sessionId: number; dueMs: number }
  | { kind: "recall" }
  /** Tasks were created, edited, paused, resumed or removed. */
  | { kind: "tasks" }
  /** A slot was opened: the next slot of a fixed delay, whose run has ended. */
  | { kind: "plans" }
  /** A run of a task with `pauseAfter` failed. */
  | { kind: "failing"; taskId: number }
  /** These runs, whose end a caller awaits, have ended. */
  | { kind: "ended"; runIds: number[] }
  /** An operation was begun or stopped. */
  | { kind: "operations" }
  | { kind: "leadership" }
  /** A heartbeat of a leader that relies on the store: since each is signalled at once, its silence is noticed at once. */
  | { kind: "beat"; sessionId: number; beat: number }
  /** The coordination service does not show this session: if its process is alive, it must send a heartbeat at once. */
  | { kind: "prompt"; sessionId: number }
  /** The holder of this token in a lock's line holds the lock now. */
  | { kind: "lock"; token: string }
  /** This worker key was revoked. */
  | { kind: "revoked"; keyId: number }
  /** Signals may have been lost: check everything. */
  | { kind: "resync" };

export interface SignalStore {
  /** Calls the listener for each signal until `signal` aborts. Signals are hints; they may be lost, doubled or late. */
  listen(listener: (signal: Signal) => void, signal: AbortSignal): Promise<void>;
}
