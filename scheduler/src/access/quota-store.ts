import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { checkNamespace } from "../base/namespace.ts";

export const quotaKinds = ["namespace", "user", "key"] as const;
export type QuotaKind = (typeof quotaKinds)[number];

/** The name of a quota for every namespace, user or worker key without a quota of its own. */
export const everyOther = "*";

/** The limits of a quota; null: no limit other than the server's own. */
export interface QuotaLimits {
  /** Runs enqueued per minute on each server: through the API, or for a key by its workers. */
  enqueues: number | null;
  /** For a namespace: runs that no worker has claimed. */
  waiting: number | null;
  /** For a namespace: the bytes that the payloads of those runs occupy in the store. */
  bytes: number | null;
  /** For a namespace: the bytes that the history of its runs occupies, as estimated by the leader. */
  history: number | null;
  /** For a user: event streams per server. */
  streams: number | null;
  /** For a worker key: live sessions. */
  sessions: number | null;
}

/** Which limits each kind of quota can have. */
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

/** How much of the store a namespace occupies. */
export interface Taken {
  /** Runs that no worker has claimed, and the bytes of their payloads. */
  runs: number;
  bytes: number;
  /** The bytes of its history by the last estimate; 0 if there was none. */
  history: number;
}

/** The part of the store's port that keeps quotas: how much a namespace, a user or a worker key may use. */
export interface QuotaStore {
  /** Ordered by kind, then by name. */
  list(): Promise<Quota[]>;
  /** A quota without any limit is removed. Repeatable: equal limits change nothing. */
  set(kind: QuotaKind, name: string, given: QuotaLimits, change: Change): Promise<{ changed: boolean }>;
  /** Waiting runs are counted up to `runsMost`. */
  taken(namespace: string, runsMost: number): Promise<Taken>;
  /**
   * Estimates from a sample of pages how many bytes each namespace's history occupies. Does so only if a quota limits a history, and if the
   * last estimate is older than `everyMs` or older than such a quota.
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

/** The quota that applies to a name; undefined: there is none. */
export const quotaOf = (rows: readonly Quota[], kind: QuotaKind, name: string): Quota | undefined =>
  rows.find((row) => row.kind === kind && row.name === name) ??
  rows.find((row) => row.kind === kind && row.name === everyOther);
