import type { Change } from "../base/change.ts";
import type { Json } from "../base/json.ts";
import type { AuditChain, ChainRow } from "./audit-chain.ts";

export type AuditAbout =
  | "task"
  | "run"
  | "operation"
  | "calendar"
  | "user"
  | "token"
  | "worker-key"
  | "group"
  | "node"
  | "secret"
  | "alarm"
  | "cluster"
  | "audit";

/** One change: the entry is written in the transaction that makes the change, and never modified. */
export interface AuditEntry {
  entryId: number;
  atMs: number;
  who: string;
  /** A verb: "edit", "pause". */
  act: string;
  about: AuditAbout;
  named: string;
  before: Json;
  after: Json;
  why: string;
}

export interface AuditFilter {
  about?: AuditAbout;
  named?: string;
  who?: string;
  act?: string;
  sinceMs?: number;
  /** Entries before this time, in epoch milliseconds; the time itself is excluded. */
  untilMs?: number;
  entryId?: number;
}

export interface AuditStore {
  /** Newest first. */
  list(filter: AuditFilter, beforeId: number, limit: number): Promise<AuditEntry[]>;
  /** Records entries for actions that have no transaction of their own; all of them, or none. */
  record(entries: Omit<AuditEntry, "entryId">[]): Promise<void>;
  /** First gives places to rows whose transaction did not wait for the chain. */
  chain(): Promise<AuditChain>;
  /** Gives places in the chain to rows whose transaction did not wait for it. Repeatable. */
  chainSkipped(): Promise<void>;
  /** Rows of the chain in order, beginning after this place. */
  chained(afterSeq: number, limit: number): Promise<ChainRow[]>;
  /** Rows from before the chain, by number. */
  older(afterEntry: number, limit: number): Promise<{ entryId: number; content: string }[]>;
  /**
   * Removes the oldest rows, up to the first that is not older than `beforeMs`; a limited number per call.
   * @returns how many rows were removed; 0: none is left to remove
   */
  prune(beforeMs: number, change: Change): Promise<number>;
}
