import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { checkNamespace } from "../base/namespace.ts";

export const quotaKinds = ["namespace", "user", "key"] as const;
export type QuotaKind = (typeof quotaKinds)[number];

/** As a quota's name: the quota applies to every namespace, user or worker key without a quota of its own. */
export const everyOther = "*";

/** The limits of a quota; null: only the server's own limit applies. */
export interface QuotaLimits {
  /** The number of runs enqueued per minute on each server: through the API, or for a worker key by its workers. */
  enqueues: number | null;
  /** For a namespace: the number of runs that no worker has claimed. */
  waiting: number | null;
  /** For a namespace: the bytes that the payloads of unclaimed runs occupy in the store. */
  bytes: number | null;
  /** For a namespace: the bytes that the history of its runs occupies, as the leader estimates. */
  history: number | null;
  /** For a user: the number of open event streams on each server. */
  streams: number | null;
  /** For a worker key: the number of live sessions. */
  sessions: number | null;
}

/** The limits that each kind of quota may set. */
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

/** The space that a namespace occupies in the store. */
export interface Taken {
  /** The number of runs that no worker has claimed; `bytes` is the size of their payloads. */
  runs: number;
  bytes: number;
  /** The size of the namespace's history in bytes, by the last estimate; 0 without an estimate. */
  history: number;
}

/** The part of the store's port that stores quotas: limits for what a namespace, a user or a worker key may use. */
export interface QuotaStore {
  /** Returns all quotas, ordered by kind, then by name. */
  list(): Promise<Quota[]>;
  /** Sets a quota; a quota without any limit is removed. Repeatable: equal limits change nothing. */
  set(kind: QuotaKind, name: string, given: QuotaLimits, change: Change): Promise<{ changed: boolean }>;
  /** Returns what the namespace occupies; counts waiting runs only up to `runsMost`. */
  taken(namespace: string, runsMost: number): Promise<Taken>;
  /**
   * Estimates from a sample of pages how many bytes each namespace's history occupies. Does nothing unless a quota limits a
   * history and the last estimate is older than `everyMs` or older than a quota that limits a history.
   */
  measureHistory(nowMs: number, everyMs: number): Promise<void>;
  /** Returns the number of live sessions of the valid worker key with this name. */
  sessions(key: string): Promise<number>;
}

/** Checks a quota's name and limits. @throws OPTION_INVALID */
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

/** Returns the quota that applies to a name: its own, else the one for `everyOther`; undefined: neither exists. */
export const quotaOf = (rows: readonly Quota[], kind: QuotaKind, name: string): Quota | undefined =>
  rows.find((row) => row.kind === kind && row.name === name) ??
  rows.find((row) => row.kind === kind && row.name === everyOther);
