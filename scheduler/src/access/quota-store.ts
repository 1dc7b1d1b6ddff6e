import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { checkNamespace } from "../base/namespace.ts";

export const quotaKinds = ["namespace", "user"] as const;
export type QuotaKind = (typeof quotaKinds)[number];

/** Stands for each namespace, or each user, that has no quota of its own. */
export const everyOther = "*";

/** null: no limit, beyond the server's own. */
export interface QuotaLimits {
  /** Runs that the API enqueues in a minute, by each server. */
  enqueues: number | null;
  /** For a namespace: runs that no worker has claimed. */
  waiting: number | null;
  /** For a namespace: bytes that their payloads take in the store. */
  bytes: number | null;
}

export interface Quota extends QuotaLimits {
  kind: QuotaKind;
  name: string;
  changed: { atMs: number; by: string; why: string };
}

export interface Waiting {
  runs: number;
  bytes: number;
}

/** The part of the store's port that keeps quotas: what the API lets a namespace, or a user, enqueue. */
export interface QuotaStore {
  /** Ordered by kind and name. */
  list(): Promise<Quota[]>;
  /** A quota without any limit is removed. Repeatable: equal limits change nothing. */
  set(kind: QuotaKind, name: string, given: QuotaLimits, change: Change): Promise<{ changed: boolean }>;
  /** Waiting runs of a namespace's tasks and their bytes, counted up to `runsMost` runs. */
  waiting(namespace: string, runsMost: number): Promise<Waiting>;
}

/** @throws OPTION_INVALID */
export function checkQuota(kind: QuotaKind, name: string, { enqueues, waiting, bytes }: QuotaLimits): void {
  const wrong = (what: string, hint: string) => new CarillonError("OPTION_INVALID", what, { hint });
  if (kind === "namespace" && name !== everyOther) checkNamespace(name);
  if (kind === "user" && (waiting !== null || bytes !== null))
    throw wrong("a user's quota has no waiting runs or bytes", "What waits belongs to a namespace: give it the quota.");
  const given = { enqueues, waiting, bytes };
  for (const [what, most] of Object.entries(given))
    if (most !== null && !(Number.isInteger(most) && most >= 1 && most <= limits.quota))
      throw wrong(`a quota of ${what} is ${String(most)}`, `Give a whole number from 1 to ${limits.quota}, or none.`);
}
