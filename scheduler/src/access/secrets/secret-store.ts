import type { Change } from "../../base/change.ts";
import type { AskingRun } from "../../run/flow.ts";
import type { Sealed, SecretPlace } from "./secret-keys.ts";

/** What can be known of a secret: never its value. */
export interface SecretRecord {
  name: string;
  version: number;
  /** Whose runs may have it; null: any of the namespace `default`. */
  tasks: string[] | null;
  /** The key that wraps the present version. */
  keyId: string;
  author: string;
  reason: string;
  changedMs: number;
}

export interface SecretVersion {
  version: number;
  keyId: string;
  author: string;
  reason: string;
  changedMs: number;
  /** Its value can still be had: of the present version, and the one before it. */
  kept: boolean;
}

/** The part of the store's port that keeps secrets: sealed as they are given. Each change has its audit entry in its transaction. */
export interface SecretStore {
  /** The next version; the value of the one before the last is destroyed. @param seal for the version that it will be */
  set(
    name: string,
    seal: (version: number) => Sealed,
    tasks: string[] | null | undefined,
    change: Change,
  ): Promise<SecretRecord>;
  /** By name. */
  list(afterName: string, limit: number): Promise<SecretRecord[]>;
  /** @throws SECRET_UNKNOWN */
  find(name: string): Promise<SecretRecord>;
  /** Newest first. */
  versions(name: string): Promise<SecretVersion[]>;
  /** Destroys every value. @throws SECRET_UNKNOWN */
  remove(name: string, change: Change): Promise<void>;
  /**
   * Wraps the data keys of up to `limit` versions anew that another key wraps.
   * @returns how many were, and how many are left
   */
  rewrap(
    keyId: string,
    wrap: (old: Omit<Sealed, "sealed">, place: SecretPlace) => Omit<Sealed, "sealed">,
    limit: number,
    change: Change,
  ): Promise<{ rewrapped: number; left: number }>;
  /**
   * For a run that a worker has. @param version default: the present one
   * @throws FENCE_STALE when the claim is no longer this one, SECRET_UNKNOWN, SECRET_FORBIDDEN
   */
  sealedFor(asking: AskingRun, name: string, version: number | null): Promise<Sealed & SecretPlace>;
}
