import type { AlarmMessage, AlarmRule, Finding } from "./alarms.ts";

export interface Thresholds {
  overdueMs: number;
  unfiredMs: number;
  stuckMs: number;
  leaderlessMs: number;
  /** The shortest time between two messages of one rule, and how long all must be well to say so. */
  summaryMs: number;
}

export interface AlarmRecord {
  rule: AlarmRule;
  subject: string;
  openedMs: number;
  lastMs: number;
  count: number;
  text: string;
  runId: number | null;
}

export interface OutboxMessage {
  id: number;
  channel: string;
  attempts: number;
  createdMs: number;
  message: AlarmMessage;
}

export interface AlarmStore {
  /**
   * Looks at these rules, opens and closes alarms, and writes what is to be told, all in one transaction, one process at a
   * time. The first look ever takes what has failed before for known. Repeatable: a second try finds it looked at.
   * @param channels to which a rule's messages go @returns how many messages were written
   */
  look(
    rules: readonly AlarmRule[],
    thresholds: Thresholds,
    channels: Partial<Record<AlarmRule, string[]>>,
    nowMs: number,
  ): Promise<number>;
  /** What a process saw by itself; the next look takes it up. */
  report(findings: readonly Finding[], nowMs: number): Promise<void>;
  /**
   * Messages for these channels that are to be sent now. Until `untilMs` nobody else takes them: whoever dies before saying
   * what became of one has it sent again.
   */
  take(channels: readonly string[], nowMs: number, untilMs: number, limit: number): Promise<OutboxMessage[]>;
  sent(id: number, nowMs: number): Promise<void>;
  /** @param nextMs null: given up */
  unsent(id: number, error: string, nextMs: number | null): Promise<void>;
  open(): Promise<AlarmRecord[]>;
  outbox(
    limit: number,
  ): Promise<
    (Omit<OutboxMessage, "message"> & { rule: AlarmRule; kind: string; sentMs: number | null; error: string | null })[]
  >;
}
