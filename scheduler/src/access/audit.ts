import type { Change } from "../base/change.ts";
import type { Json } from "../base/json.ts";
import type { AuditChain, ChainRow } from "./audit-chain.ts";

/** The kinds of objects that entries are about. */
export const auditAbouts = [
  ...(["task", "run", "operation", "calendar", "user", "token", "worker-key", "group", "node"] as const),
  ...(["secret", "alarm", "hook", "cluster", "audit"] as const),
];
export type AuditAbout = (typeof auditAbouts)[number];

/**
 * One change, written in the transaction of the change, or one action without a transaction of its own (see `record`). An entry is never
 * modified.
 */
export interface AuditEntry {
  entryId: number;
  atMs: number;
  who: string;
  /** The action as a verb, such as "edit" or "pause". */
  act: string;
  about: AuditAbout;
  named: string;
  before: Json;
  after: Json;
  why: string;
}

/** An entry with the name of its run's task; null for other entries, and for runs of which no history is left. */
export type ListedEntry = AuditEntry & { task: string | null };

export interface AuditFilter {
  about?: AuditAbout;
  named?: string;
  who?: string;
  act?: string;
  sinceMs?: number;
  /** Only entries before this time, in epoch ms (exclusive). */
  untilMs?: number;
  entryId?: number;
}

export interface AuditStore {
  /** Returns entries, newest first. */
  list(filter: AuditFilter, beforeId: number, limit: number): Promise<ListedEntry[]>;
  /** Records entries of actions that have no transaction of their own: all of them, or none on an error. */
  record(entries: Omit<AuditEntry, "entryId">[]): Promise<void>;
  /** Adds the rows that `chainSkipped` adds, and then returns the state of the chain. */
  chain(): Promise<AuditChain>;
  /** Adds to the chain the rows whose transactions did not wait for the chain. Repeatable. */
  chainSkipped(): Promise<void>;
  /** Returns up to `limit` rows of the chain in order, beginning after the row `afterSeq`. */
  chained(afterSeq: number, limit: number): Promise<ChainRow[]>;
  /** Returns up to `limit` rows that are older than the chain, in the order of their numbers. */
  older(afterEntry: number, limit: number): Promise<{ entryId: number; content: string }[]>;
  /**
   * Removes the oldest rows, up to the first row that is not older than `beforeMs`. The rows from before the chain are removed only all
   * at once. The rows of the chain are removed in a limited number per call.
   * @returns the number of removed rows; 0 if there is no row to remove
   */
  prune(beforeMs: number, change: Change): Promise<number>;
}
