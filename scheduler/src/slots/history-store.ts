/** The outcome of slots, and the partitions that hold the records. */
export interface SlotRecord {
  slotMs: number;
  outcome: "run" | "skipped" | "missed";
  runId: number | null;
  reason: string | null;
  term: number | null;
  acceptedMs: number;
  /** The times of the task's own schedule that a calendar moved to this slot; null: its own time only. */
  nominalMs: number[] | null;
}

export interface SlotRange {
  fromMs: number;
  toMs: number;
  version: number;
  slots: number | null;
  outcome: "skipped" | "missed";
  reason: string;
}

export interface HistoryStore {
  /**
   * Creates partitions for `daysAhead` days (default 7), drops those wholly older than `keepMs`; null drops none. A role that may not do so
   * logs which are missing.
   * @returns names
   * @throws STORE_PARTITIONS: today's are missing, and this role may not make them
   */
  rotate(nowMs: number, keepMs: number | null, daysAhead?: number): Promise<{ created: string[]; dropped: string[] }>;
  slots(
    taskId: number,
    fromMs: number,
    toMs: number,
    limit: number,
  ): Promise<{ slots: SlotRecord[]; ranges: SlotRange[] }>;
  /** Returns those of a task's nominal times that have an entry in the ledger which an edit at `editedMs` leaves as it is. */
  accounted(taskId: number, nominalMs: readonly number[], editedMs: number): Promise<Set<number>>;
}
