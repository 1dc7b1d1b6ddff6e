import type { Change } from "../../base/change.ts";
import type { AskingRun } from "../../run/flow.ts";
import type { Sealed, SecretPlace } from "./secret-keys.ts";

/** A secret's metadata without its value. */
export interface SecretRecord {
  name: string;
  version: number;
  /** The tasks whose runs may read it; null: all tasks of the namespace `default`. */
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
  /** True if the value is still stored, as it is for the present version and the one before it. */
  kept: boolean;
}

/** The part of the store's port that keeps secrets, in sealed form. Each change has its audit entry in its transaction. */
export interface SecretStore {
  /**
   * Stores the next version, and destroys the value of the version before the last. @param seal seals the value for the version number that
   * it receives
   */
  set(
    name: string,
    seal: (version: number) => Sealed,
    tasks: string[] | null | undefined,
    change: Change,
  ): Promise<SecretRecord>;
  /** Ordered by name. */
  list(afterName: string, limit: number): Promise<SecretRecord[]>;
  /** @throws SECRET_UNKNOWN */
  find(name: string): Promise<SecretRecord>;
  /** Newest first. */
  versions(name: string): Promise<SecretVersion[]>;
  /** Removes the secret and destroys all its values. @throws SECRET_UNKNOWN */
  remove(name: string, change: Change): Promise<void>;
  /**
   * Rewraps with the key `keyId` the data keys of up to `limit` versions that another key wraps.
   * @returns how many were rewrapped, and how many are left
   */
  rewrap(
    keyId: string,
    wrap: (old: Omit<Sealed, "sealed">, place: SecretPlace) => Omit<Sealed, "sealed">,
    limit: number,
    change: Change,
  ): Promise<{ rewrapped: number; left: number }>;
  /**
   * Returns the sealed value for a claimed run. @param version default: the present version
   * @throws FENCE_STALE if the run no longer has this claim, SECRET_UNKNOWN, SECRET_FORBIDDEN
   */
  sealedFor(asking: AskingRun, name: string, version: number | null): Promise<Sealed & SecretPlace>;
}
