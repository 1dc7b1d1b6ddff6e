/** Figures of the whole cluster as the store has them, from which a node's metrics and alarms are computed. */
export interface Figures {
  /** Exact numbers of runs and slots that ended since counting began. */
  ended: { succeeded: number; failed: number; cancelled: number; skipped: number; missed: number; retried: number };
  /** Live runs by state, each counted up to limits.countedRuns; with many runs, only those states that are cheap to count. */
  live: Partial<Record<"held" | "paused" | "ready" | "claimed" | "undecided", number>>;
  /** Per group, the due time of the oldest run that is due and not claimed. */
  oldest: { group: string; dueMs: number }[];
  leadership: { term: number; led: boolean };
  /** The oldest holder of each kind. */
  snapshots: HeldSnapshot[];
}

/** A snapshot, and its holder, that keeps dead rows from being removed: while they stay, every query for due runs scans them. */
export interface HeldSnapshot {
  kind: "transaction" | "prepared" | "slot" | "standby";
  /** The name by which an operator finds it. */
  holder: string;
  /** Time since the snapshot began, ms; null: the store does not report it. */
  ms: number | null;
  /** How many transactions have begun since. */
  transactions: number;
}

export interface FigureStore {
  read(nowMs: number): Promise<Figures>;
}
