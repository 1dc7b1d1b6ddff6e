import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { checkNamespace } from "../base/namespace.ts";

export const quotaKinds = ["namespace", "user", "key"] as const;
export type QuotaKind = (typeof quotaKinds)[number];

/** Stands for each namespace, user or worker key that has no quota of its own. */
export const everyOther = "*";

/** null: no limit, beyond the server's own. */
export interface QuotaLimits {
  /** Runs enqueued in a minute, by each server: by the API, or for a key by its workers. */
  enqueues: number | null;
  /** For a namespace: runs that no worker has claimed. */
  waiting: number | null;
  /** For a namespace: bytes that their payloads take in the store. */
  bytes: number | null;
  /** For a namespace: bytes that the history of its runs takes, as the leader estimates. */
  history: number | null;
  /** For a user: event streams, from each server. */
  streams: number | null;
  /** For a worker key: live sessions. */
  sessions: number | null;
}

/** The limits that each kind can have. */
const limitsOf: Record<QuotaKind, readonly (keyof QuotaLimits)[]> = {
  namespace: ["enqueues", "waiting", "bytes", "history"],
  user: ["enqueues", "streams"],
  key: ["enqueues", "sessions"],
};

export const noLimits: QuotaLimits = {
  enqueues: null,
  waiting: null,
  bytes: null,
  history: null,
  streams: null,
  sessions: null,
};

export const limitNames = Object.keys(noLimits) as (keyof QuotaLimits)[];

export interface Quota extends QuotaLimits {
  kind: QuotaKind;
  name: string;
  changed: { atMs: number; by: string; why: string };
}

/** How much of the store a namespace takes. */
export interface Taken {
  /** Runs that no worker has claimed, and the bytes of their payloads. */
  runs: number;
  bytes: number;
  /** Bytes of its history, as last estimated; 0 if they never were. */
  history: number;
}

/** The part of the store's port that keeps quotas: how much a namespace, a user or a worker key may take. */
export interface QuotaStore {
  /** Ordered by kind and name. */
  list(): Promise<Quota[]>;
  /** A quota without any limit is removed. Repeatable: equal limits change nothing. */
  set(kind: QuotaKind, name: string, given: QuotaLimits, change: Change): Promise<{ changed: boolean }>;
  /** Waiting runs are counted up to `runsMost`. */
  taken(namespace: string, runsMost: number): Promise<Taken>;
  /**
   * Estimates from a sample of its pages how many bytes each namespace's history takes, if there is a quota of it, and if the last estimate
   * is older than `everyMs` or than such a quota.
   */
  measureHistory(nowMs: number, everyMs: number): Promise<void>;
  /** Live sessions of the valid worker key of this name. */
  sessions(key: string): Promise<number>;
}

/** @throws OPTION_INVALID */
export function checkQuota(kind: QuotaKind, name: string, given: QuotaLimits): void {
  const wrong = (what: string, hint: string) => new CarillonError("OPTION_INVALID", what, { hint });
  if (kind === "namespace" && name !== everyOther) checkNamespace(name);
  for (const [what, most] of Object.entries(given) as [keyof QuotaLimits, number | null][]) {
    if (most === null) continue;
    if (!limitsOf[kind].includes(what))
      throw wrong(`a ${kind}'s quota has no ${what}`, `A ${kind} may have ${limitsOf[kind].join(", ")}.`);
    if (!(Number.isInteger(most) && most >= 1 && most <= limits.quota))
      throw wrong(`a quota of ${what} is ${String(most)}`, `Give a whole number from 1 to ${limits.quota}, or none.`);
  }
}

/** The quota that applies to a name; undefined: none. */
export const quotaOf = (rows: readonly Quota[], kind: QuotaKind, name: string): Quota | undefined =>
  rows.find((row) => row.kind === kind && row.name === name) ??
  rows.find((row) => row.kind === kind && row.name === everyOther);
