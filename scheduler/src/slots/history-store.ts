/** What came of slots, and the partitions that keep it. */
export interface SlotRecord {
  slotMs: number;
  outcome: "run" | "skipped" | "missed";
  runId: number | null;
  reason: string | null;
  term: number | null;
  acceptedMs: number;
  /** The times of the task's own schedule that a calendar moved here; null: it stands for its own time. */
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
  /** Of these nominal times of a task, those that have an account which an edit at `editedMs` leaves as it is. */
  accounted(taskId: number, nominalMs: readonly number[], editedMs: number): Promise<Set<number>>;
}
