export interface SlotRecord {
  slotMs: number;
  outcome: "run" | "skipped" | "missed";
  runId: number | null;
  reason: string | null;
  term: number | null;
  acceptedMs: number;
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
  /** Creates partitions ahead, drops those wholly older than `keepMs`; null drops none. @returns names */
  rotate(nowMs: number, keepMs: number | null): Promise<{ created: string[]; dropped: string[] }>;
  slots(
    taskId: number,
    fromMs: number,
    toMs: number,
    limit: number,
  ): Promise<{ slots: SlotRecord[]; ranges: SlotRange[] }>;
}
