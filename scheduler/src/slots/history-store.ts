/** The recorded outcome of a slot. */
export interface SlotRecord {
  slotMs: number;
  outcome: "run" | "skipped" | "missed";
  runId: number | null;
  reason: string | null;
  term: number | null;
  acceptedMs: number;
  /** The nominal times of the task's own schedule that a calendar moved to this slot; null if the slot covers only its own time. */
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
   * Creates the partitions for the next `daysAhead` days (default 7), and drops partitions whose data is all older than `keepMs`; null
   * drops none. If the database role may not create partitions, the missing ones are logged.
   * @returns the names of the partitions
   * @throws STORE_PARTITIONS if today's partitions are missing and the role may not create them
   */
  rotate(nowMs: number, keepMs: number | null, daysAhead?: number): Promise<{ created: string[]; dropped: string[] }>;
  slots(
    taskId: number,
    fromMs: number,
    toMs: number,
    limit: number,
  ): Promise<{ slots: SlotRecord[]; ranges: SlotRange[] }>;
  /** Returns those of a task's nominal times that are recorded in the ledger and remain there after an edit at `editedMs`. */
  accounted(taskId: number, nominalMs: readonly number[], editedMs: number): Promise<Set<number>>;
}
