import type { Json } from "../base/json.ts";

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
  | "cluster";

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
  /** Of what has no transaction of its own; all of them, or none. */
  record(entries: Omit<AuditEntry, "entryId">[]): Promise<void>;
}
