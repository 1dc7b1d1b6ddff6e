import type { Change } from "../base/change.ts";
import type { AlarmMessage, AlarmRule, Finding } from "./alarms.ts";
import type { RuleContent, StoredRule } from "./stored-rules.ts";

export interface Thresholds {
  /**
   * The rule for late starts counts a first attempt that starts more than this many ms late; the other thresholds are in ms too.
   */
  lateMs: number;
  overdueMs: number;
  unfiredMs: number;
  stuckMs: number;
  leaderlessMs: number;
  /**
   * The shortest time between two messages of a rule, in ms. "cleared" is sent once the rule has had no open alarm for the same time.
   */
  summaryMs: number;
}

export interface AlarmRecord {
  /** The name of a rule of the settings, or of a stored rule. */
  rule: string;
  subject: string;
  openedMs: number;
  lastMs: number;
  count: number;
  text: string;
  runId: number | null;
  /** Set once a user has acknowledged the alarm. An acknowledged alarm sends no messages until it has ended and is raised again. */
  seen: Said | null;
  /** The alarm sends no messages before this time in epoch ms; null: it is not silenced. */
  silencedUntilMs: number | null;
}

export interface Said {
  atMs: number;
  by: string;
  why: string;
}

/**
 * A silence: for its duration, matching alarms send no messages. They are still counted and listed, and are reported if they are still open
 * afterwards.
 */
export interface Silence {
  silenceId: number;
  /** The rule's name; null: every rule. */
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
  /** The error of the last attempt to send the message; null: the message was sent, or no attempt has failed yet. */
  error: string | null;
  /** The time of the next attempt in epoch ms; null: the message was sent or given up. */
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
   * Evaluates the rules of the settings, opens and closes alarms, and stores the messages to be sent, in one transaction. Only one process
   * at a time does this. The very first evaluation treats earlier failures as already reported. Repeatable: a second evaluation at the same
   * time changes nothing.
   * @param channels the channels for each rule's messages; the open alarms of a rule without channels end without a message
   * @param found findings of this process itself, in addition to what the store shows
   * @returns the number of stored messages; 0 also while another process evaluates the rules
   */
  look(
    rules: readonly AlarmRule[],
    thresholds: Thresholds,
    channels: Partial<Record<AlarmRule, string[]>>,
    nowMs: number,
    found?: readonly Finding[],
  ): Promise<number>;
  /**
   * Returns the threshold `lateMs` with which the rules are evaluated; null: no process evaluates the rule for late starts, or none has
   * done so recently, so workers need not report late starts.
   */
  lateFrom(nowMs: number): Promise<number | null>;
  /**
   * Evaluates the enabled stored rules, as `look` does for the rules of the settings. The leader calls it, even without channels of its
   * own: the messages wait in the store for a node that has the channels. @returns the number of stored messages
   */
  follow(summaryMs: number, nowMs: number): Promise<number>;
  /**
   * Returns why the cluster is behind: a slot has been unplanned, or a due run unclaimed, for longer than the threshold; null: it is not
   * behind.
   */
  behind(thresholds: Pick<Thresholds, "overdueMs" | "unfiredMs">, nowMs: number): Promise<string | null>;
  /** Stores findings of this process, which the next `look` includes. */
  report(findings: readonly Finding[], nowMs: number): Promise<void>;
  /**
   * Takes up to `limit` messages for these channels that are due to be sent. Messages of one rule to one channel keep their order,
   * so that "cleared" arrives after the message to which it refers. No other process takes these messages before `untilMs`; if this
   * process dies without reporting an outcome, they are sent again after `untilMs`.
   */
  take(channels: readonly string[], nowMs: number, untilMs: number, limit: number): Promise<OutboxMessage[]>;
  sent(id: number, nowMs: number, by?: Try): Promise<void>;
  /** Records a failed attempt. @param nextMs time of the next attempt in epoch ms; null: the message is given up */
  unsent(id: number, error: string, nextMs: number | null, by?: Try): Promise<void>;
  /** Returns the open alarms, the latest first. */
  open(nowMs?: number): Promise<AlarmRecord[]>;
  /** Returns messages, newest first. @param beforeId only messages with a lower id; default: begin with the newest */
  outbox(limit: number, beforeId?: number): Promise<OutboxRow[]>;
  /** Returns one message with all attempts to send it. @throws ALARM_UNKNOWN */
  message(id: number): Promise<OutboxRow & { message: AlarmMessage; tries: OutboxTry[] }>;
  /** Stores a test message, whose text says that nothing is wrong. @returns its id */
  test(channel: string, change: Change): Promise<number>;
  /** Acknowledges the rule's open alarms, of one task or of all. @returns their number @throws ALARM_UNKNOWN if none is open */
  see(rule: string, task: string | null, change: Change): Promise<number>;
  /**
   * Adds a silence. @throws TASK_UNKNOWN, ALARM_UNKNOWN if there is no such task or rule, because a silence with a mistyped name would have
   * no effect
   */
  silence(what: Pick<Silence, "rule" | "task" | "untilMs">, change: Change): Promise<Silence>;
  /** Ends the silence. @throws ALARM_UNKNOWN */
  unsilence(silenceId: number, change: Change): Promise<void>;
  /** Returns the silences that are in force at `nowMs`. */
  silences(nowMs: number): Promise<Silence[]>;
  /** Returns the stored rules, ordered by name. */
  rules(): Promise<StoredRule[]>;
  /** Returns the stored rule with this name. @throws ALARM_UNKNOWN */
  rule(name: string): Promise<StoredRule>;
  /** Adds a rule. @param content already checked @throws ALARM_RULE_EXISTS, OPTION_INVALID if there are too many rules */
  createRule(name: string, content: RuleContent, change: Change): Promise<StoredRule>;
  /**
   * Replaces a rule; equal content changes nothing. If the new content disables the rule, its open alarms end without a message.
   * @param expectedVersion null: any version @throws ALARM_UNKNOWN, ALARM_RULE_STALE
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
