import type { Change } from "../base/change.ts";
import type { AlarmMessage, AlarmRule, Finding } from "./alarms.ts";
import type { RuleContent, StoredRule } from "./stored-rules.ts";

export interface Thresholds {
  /** A first try that waited longer than this for a worker or for the scheduler has started late. */
  lateMs: number;
  overdueMs: number;
  unfiredMs: number;
  stuckMs: number;
  leaderlessMs: number;
  /**
   * The shortest time between two messages of one rule, and how long every subject of the rule must be well before "cleared" is sent, in
   * milliseconds.
   */
  summaryMs: number;
}

export interface AlarmRecord {
  /** A rule of the settings, or the name of a stored rule. */
  rule: string;
  subject: string;
  openedMs: number;
  lastMs: number;
  count: number;
  text: string;
  runId: number | null;
  /** Set once a user has acknowledged the alarm: it sends no messages until it has ended and is raised again. */
  seen: Said | null;
  /** The alarm sends no messages before this time; null: it is not silenced. */
  silencedUntilMs: number | null;
}

export interface Said {
  atMs: number;
  by: string;
  why: string;
}

/**
 * A silence: for its duration, matching alarms send no messages. They are still counted and shown, and reported if they are open
 * afterwards.
 */
export interface Silence {
  silenceId: number;
  /** null: every rule. */
  rule: string | null;
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
  rule: string;
  kind: string;
  sentMs: number | null;
  /** The error of the last attempt. */
  error: string | null;
  /** When the message is tried again; null: it was sent or given up. */
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
   * Evaluates these rules, opens and closes alarms, and writes the messages to be sent, all in one transaction. Only one process at a time
   * does this. The very first evaluation treats earlier failures as already reported. Repeatable: a repetition finds the evaluation done.
   * @param channels the channels for each rule's messages; the open alarms of a rule without channels end without a message
   * @param found findings of this process itself, in addition to what the store shows @returns how many messages were written
   */
  look(
    rules: readonly AlarmRule[],
    thresholds: Thresholds,
    channels: Partial<Record<AlarmRule, string[]>>,
    nowMs: number,
    found?: readonly Finding[],
  ): Promise<number>;
  /**
   * Returns the `lateMs` of the process that looks for alarms; null: no process looks for late starts, or none has looked lately, so a
   * report of them would never be read.
   */
  lateFrom(nowMs: number): Promise<number | null>;
  /**
   * Evaluates the stored rules that are enabled, in the same way. The leader calls it, whether or not it has channels itself: the messages
   * wait for a node that has them. @returns how many messages were written
   */
  follow(summaryMs: number, nowMs: number): Promise<number>;
  /** Why the cluster is not on time: a slot was not planned, or a due run not claimed, for that long; null: it is on time. */
  behind(thresholds: Pick<Thresholds, "overdueMs" | "unfiredMs">, nowMs: number): Promise<string | null>;
  /** Stores a process's own findings; the next `look` includes them. */
  report(findings: readonly Finding[], nowMs: number): Promise<void>;
  /**
   * Takes messages for these channels that are due now. Messages of one rule to one channel stay in order, so that "cleared" arrives after
   * the message that it refers to. No other process takes these messages before `untilMs`: if this process dies without reporting an
   * outcome, they are sent again.
   */
  take(channels: readonly string[], nowMs: number, untilMs: number, limit: number): Promise<OutboxMessage[]>;
  sent(id: number, nowMs: number, by?: Try): Promise<void>;
  /** @param nextMs when the message is tried again; null: it is given up */
  unsent(id: number, error: string, nextMs: number | null, by?: Try): Promise<void>;
  /** The open alarms, the latest first. */
  open(nowMs?: number): Promise<AlarmRecord[]>;
  /** The messages, newest first. @param beforeId default: begins with the newest */
  outbox(limit: number, beforeId?: number): Promise<OutboxRow[]>;
  /** @throws ALARM_UNKNOWN */
  message(id: number): Promise<OutboxRow & { message: AlarmMessage; tries: OutboxTry[] }>;
  /** Writes a test message, which says that nothing is wrong. @returns its number */
  test(channel: string, change: Change): Promise<number>;
  /** Acknowledges the rule's open alarms, of one task or of all. @returns how many @throws ALARM_UNKNOWN if none is open */
  see(rule: string, task: string | null, change: Change): Promise<number>;
  /** @throws TASK_UNKNOWN, ALARM_UNKNOWN if there is no such task or rule, because a silence with a mistyped name would have no effect */
  silence(what: Pick<Silence, "rule" | "task" | "untilMs">, change: Change): Promise<Silence>;
  /** Ends the silence. @throws ALARM_UNKNOWN */
  unsilence(silenceId: number, change: Change): Promise<void>;
  /** The silences in force. */
  silences(nowMs: number): Promise<Silence[]>;
  /** The stored rules, by name. */
  rules(): Promise<StoredRule[]>;
  /** @throws ALARM_UNKNOWN */
  rule(name: string): Promise<StoredRule>;
  /** @param content checked @throws ALARM_RULE_EXISTS; OPTION_INVALID if there are too many */
  createRule(name: string, content: RuleContent, change: Change): Promise<StoredRule>;
  /**
   * Replaces a rule. The open alarms of a rule that is turned off end without a message.
   * @param expectedVersion null: any @throws ALARM_UNKNOWN, ALARM_RULE_STALE
   */
  replaceRule(name: string, content: RuleContent, change: Change, expectedVersion: number | null): Promise<StoredRule>;
  /** Removes a rule; its open alarms end without a message. @throws ALARM_UNKNOWN, ALARM_RULE_STALE */
  removeRule(name: string, change: Change, expectedVersion: number | null): Promise<void>;
}

/** One attempt to send a message: its number, its time, and the node that made it. */
export interface Try {
  attempt: number;
  atMs: number;
  node: string;
}
