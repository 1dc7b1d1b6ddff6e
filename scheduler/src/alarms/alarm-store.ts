import type { Change } from "../base/change.ts";
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
  /** Somebody has said that they know: it is told of no more until it is over and comes again. */
  seen: Said | null;
  /** Until then nothing of it is told; null: it is. */
  silencedUntilMs: number | null;
}

export interface Said {
  atMs: number;
  by: string;
  why: string;
}

/** Alarms that are not told of for a while: counted, shown, and told if they are still open afterwards. */
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
  /** Of the last try. */
  error: string | null;
  /** When it is tried again; null: it is sent, or given up. */
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
   * Looks at these rules, opens and closes alarms, and writes what is to be told, all in one transaction, one process at a
   * time. The first look ever takes what has failed before for known. Repeatable: a second try finds it looked at.
   * @param channels to which a rule's messages go; of a rule that has none, all that is open ends untold
   * @param found what the looking process itself has found, beside what the store tells @returns how many messages were written
   */
  look(
    rules: readonly AlarmRule[],
    thresholds: Thresholds,
    channels: Partial<Record<AlarmRule, string[]>>,
    nowMs: number,
    found?: readonly Finding[],
  ): Promise<number>;
  /** What a process saw by itself; the next look takes it up. */
  report(findings: readonly Finding[], nowMs: number): Promise<void>;
  /**
   * Messages for these channels that are to be sent now, of one rule to one channel in their order: who hears "all clear" has
   * heard what it ends. Until `untilMs` nobody else takes them: whoever dies before saying
   * what became of one has it sent again.
   */
  take(channels: readonly string[], nowMs: number, untilMs: number, limit: number): Promise<OutboxMessage[]>;
  sent(id: number, nowMs: number, by?: Try): Promise<void>;
  /** @param nextMs null: given up */
  unsent(id: number, error: string, nextMs: number | null, by?: Try): Promise<void>;
  /** The latest first. */
  open(nowMs?: number): Promise<AlarmRecord[]>;
  /** Newest first. @param beforeId default: from the newest */
  outbox(limit: number, beforeId?: number): Promise<OutboxRow[]>;
  /** @throws ALARM_UNKNOWN */
  message(id: number): Promise<OutboxRow & { message: AlarmMessage; tries: OutboxTry[] }>;
  /** Writes a message that says that nothing is wrong. @returns its number */
  test(channel: string, change: Change): Promise<number>;
  /** Open alarms of the rule, of the task or of all, are known to somebody. @returns how many @throws ALARM_UNKNOWN where none is open */
  see(rule: AlarmRule, task: string | null, change: Change): Promise<number>;
  /** @throws TASK_UNKNOWN for a task that there is not: by a slip in its name nothing would be silenced */
  silence(what: Pick<Silence, "rule" | "task" | "untilMs">, change: Change): Promise<Silence>;
  /** Ends it. @throws ALARM_UNKNOWN */
  unsilence(silenceId: number, change: Change): Promise<void>;
  /** Those that hold. */
  silences(nowMs: number): Promise<Silence[]>;
}

/** Who tried to send a message, which time. */
export interface Try {
  attempt: number;
  atMs: number;
  node: string;
}
