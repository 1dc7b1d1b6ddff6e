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

/** One change: written once, in the transaction that makes it, and never changed. */
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
  /** Not included. */
  untilMs?: number;
  entryId?: number;
}

export interface AuditStore {
  /** Newest first. */
  list(filter: AuditFilter, beforeId: number, limit: number): Promise<AuditEntry[]>;
  /** Records entries for actions that have no transaction of their own; all of them, or none. */
  record(entries: Omit<AuditEntry, "entryId">[]): Promise<void>;
  /** Rows whose commit did not wait for the chain get their places first. */
  chain(): Promise<AuditChain>;
  /** Gives places to the rows whose commit did not wait for the chain. Repeatable. */
  chainSkipped(): Promise<void>;
  /** Rows of the chain, in its order, from the one after this place. */
  chained(afterSeq: number, limit: number): Promise<ChainRow[]>;
  /** Rows from before the chain, by number. */
  older(afterEntry: number, limit: number): Promise<{ entryId: number; content: string }[]>;
  /**
   * Removes the oldest rows up to the first one that is not older than this, some at a time.
   * @returns how many were removed now; 0: none is left to remove
   */
  prune(beforeMs: number, change: Change): Promise<number>;
}
