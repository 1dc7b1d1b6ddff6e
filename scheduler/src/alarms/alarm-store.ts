import type { Change } from "../base/change.ts";
import type { AlarmMessage, AlarmRule, Finding } from "./alarms.ts";

export interface Thresholds {
  overdueMs: number;
  unfiredMs: number;
  stuckMs: number;
  leaderlessMs: number;
  /** The shortest time between two messages of one rule, and how long all must be well before "cleared" is sent. */
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
  /** Set once a user has acknowledged the alarm: no messages about it until it ends and is raised again. */
  seen: Said | null;
  /** No messages about it until then; null: it is not silenced. */
  silencedUntilMs: number | null;
}

export interface Said {
  atMs: number;
  by: string;
  why: string;
}

/** A silence: for its duration, matching alarms send no messages. They are counted, shown, and reported if still open afterwards. */
export interface Silence {
  silenceId: number;
  /** null: any. */
  rule: AlarmRule | null;
  task: string | null;
  fromMs: number;
  untilMs: number;
  author: string;
  reason: string;
}

export interface OutboxRow {
  id: number;
  channel: string;
  attempts: number;
  createdMs: number;
  rule: AlarmRule | "test";
  kind: string;
  sentMs: number | null;
  /** The error of the last attempt. */
  error: string | null;
  /** When the message is tried again; null: it was sent, or given up. */
  nextMs: number | null;
}

export interface OutboxTry {
  attempt: number;
  atMs: number;
  node: string;
  error: string | null;
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
   * Evaluates these rules, opens and closes alarms, and writes the messages to be sent, all in one transaction, one process at a time.
   * The very first look treats earlier failures as already known. Repeatable: a second try finds the look done.
   * @param channels the channels for each rule's messages; the open alarms of a rule without channels end without a message
   * @param found what this process has found itself, beside what the store shows @returns how many messages were written
   */
  look(
    rules: readonly AlarmRule[],
    thresholds: Thresholds,
    channels: Partial<Record<AlarmRule, string[]>>,
    nowMs: number,
    found?: readonly Finding[],
  ): Promise<number>;
  /** Records what a process has found itself; the next look includes it. */
  report(findings: readonly Finding[], nowMs: number): Promise<void>;
  /**
   * Takes messages for these channels that are due now. One rule's messages to one channel stay in order, so that "cleared" arrives after
   * the message it answers. No other process takes them until `untilMs`: if this process dies before it reports an outcome, the message
   * is sent again.
   */
  take(channels: readonly string[], nowMs: number, untilMs: number, limit: number): Promise<OutboxMessage[]>;
  sent(id: number, nowMs: number, by?: Try): Promise<void>;
  /** @param nextMs null: given up */
  unsent(id: number, error: string, nextMs: number | null, by?: Try): Promise<void>;
  /** Latest first. */
  open(nowMs?: number): Promise<AlarmRecord[]>;
  /** Newest first. @param beforeId default: from the newest */
  outbox(limit: number, beforeId?: number): Promise<OutboxRow[]>;
  /** @throws ALARM_UNKNOWN */
  message(id: number): Promise<OutboxRow & { message: AlarmMessage; tries: OutboxTry[] }>;
  /** Writes a test message, which says that nothing is wrong. @returns its number */
  test(channel: string, change: Change): Promise<number>;
  /** Acknowledges the rule's open alarms, of one task or of all. @returns how many @throws ALARM_UNKNOWN where none is open */
  see(rule: AlarmRule, task: string | null, change: Change): Promise<number>;
  /** @throws TASK_UNKNOWN if the task does not exist: with a mistyped name nothing would be silenced */
  silence(what: Pick<Silence, "rule" | "task" | "untilMs">, change: Change): Promise<Silence>;
  /** Ends the silence. @throws ALARM_UNKNOWN */
  unsilence(silenceId: number, change: Change): Promise<void>;
  /** The silences in force. */
  silences(nowMs: number): Promise<Silence[]>;
}

/** One attempt to send a message: its number, its time, and the node that made it. */
export interface Try {
  attempt: number;
  atMs: number;
  node: string;
}
