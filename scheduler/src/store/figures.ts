import type { Counters } from "../task/task-record.ts";

/** Counts and states of the whole cluster, read from the store. A node computes its metrics of the cluster from them. */
export interface Figures {
  /** Exact numbers of runs and slots since counting began, by how they ended, and of retried attempts. */
  ended: Counters;
  /**
   * The number of live runs by state, each counted up to limits.countedRuns. With many runs, only states that are cheap to count are
   * present.
   */
  live: Partial<Record<"held" | "paused" | "ready" | "claimed" | "undecided", number>>;
  /**
   * The due time (epoch ms) of the oldest due run of a group that waits only for a worker: the limits.shownGroups + 1
   * groups with the oldest such runs, oldest first.
   */
  oldest: { group: string; dueMs: number }[];
  /**
   * The number of a group's live workers, and the sum of their capacities: of groups with at least one task that is not paused,
   * the limits.shownGroups + 1 with the fewest workers, fewest first.
   */
  groups: { group: string; workers: number; capacity: number }[];
  leadership: { term: number; led: boolean };
  /** For each kind, the holder of the oldest snapshot. */
  snapshots: HeldSnapshot[];
}

/** A snapshot that prevents PostgreSQL from removing dead rows, and its holder. Every query for due runs then scans these rows. */
export interface HeldSnapshot {
  kind: "transaction" | "prepared" | "slot" | "standby";
  /** The name by which an operator can find the holder. */
  holder: string;
  /** The age of the snapshot in ms; null if the store does not report it. */
  ms: number | null;
  /** The number of transactions that have begun since the snapshot. */
  transactions: number;
}

export interface FigureStore {
  read(nowMs: number): Promise<Figures>;
}
