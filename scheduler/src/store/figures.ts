/** Figures of the whole cluster, as the store has them; what a node's metrics and alarms are made of. */
export interface Figures {
  /** Ended since there are counters, exact. */
  ended: { succeeded: number; failed: number; cancelled: number; skipped: number; missed: number; retried: number };
  /** Live runs by state, each counted up to limits.countedRuns; only those states that are cheap to count where there are many. */
  live: Partial<Record<"held" | "paused" | "ready" | "claimed" | "undecided", number>>;
  /** Of each group the due time of the oldest run that is due and not claimed. */
  oldest: { group: string; dueMs: number }[];
  leadership: { term: number; led: boolean };
  /** The oldest of each kind. */
  snapshots: HeldSnapshot[];
}

/** What keeps dead rows in the store from being removed: while they stay, every look at what is due walks them. */
export interface HeldSnapshot {
  kind: "transaction" | "prepared" | "slot" | "standby";
  /** The name by which an operator finds it. */
  holder: string;
  /** Since it began; null: the store does not say. */
  ms: number | null;
  /** How many transactions have begun since. */
  transactions: number;
}

export interface FigureStore {
  read(nowMs: number): Promise<Figures>;
}
