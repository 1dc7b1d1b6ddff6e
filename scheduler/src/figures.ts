/** Figures of the whole cluster, as the store has them; what a node's metrics and alarms are made of. */
export interface Figures {
  /** Ended since there are counters, exact. */
  ended: { succeeded: number; failed: number; cancelled: number; skipped: number; missed: number; retried: number };
  /** Live runs by state, each counted up to limits.countedRuns; only those states that are cheap to count where there are many. */
  live: Partial<Record<"held" | "paused" | "ready" | "claimed" | "undecided", number>>;
  /** Of each group the due time of the oldest run that is due and not claimed. */
  oldest: { group: string; dueMs: number }[];
  leadership: { term: number; led: boolean };
}

export interface FigureStore {
  read(nowMs: number): Promise<Figures>;
}
