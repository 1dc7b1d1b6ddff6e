import type { Change } from "../../base/change.ts";
import type { AskingRun } from "../../run/flow.ts";
import type { Sealed, SecretPlace } from "./secret-keys.ts";

/** A secret's metadata without its value. */
export interface SecretRecord {
  name: string;
  version: number;
  /** The tasks whose runs may read it; null: all tasks of the namespace `default`. */
  tasks: string[] | null;
  /** The id of the key that encrypts the data key of the present version. */
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
  /** True if the value is still stored; this applies to the present version and the version before it. */
  kept: boolean;
}

/**
 * The part of the store's port that stores secrets, encrypted. Each change adds its audit entries in the same transaction; only a new
 * encryption of second factors' data keys adds none.
 */
export interface SecretStore {
  /**
   * Stores the next version. The value of the version before it is kept; the values of older versions are deleted.
   * @param seal encrypts the value for the version number that it receives
   */
  set(
    name: string,
    seal: (version: number) => Sealed,
    tasks: string[] | null | undefined,
    change: Change,
  ): Promise<SecretRecord>;
  /** Returns up to `limit` secrets after the name `afterName`, ordered by name. */
  list(afterName: string, limit: number): Promise<SecretRecord[]>;
  /** @throws SECRET_UNKNOWN */
  find(name: string): Promise<SecretRecord>;
  /** Returns the latest 1,000 versions of the secret, newest first. */
  versions(name: string): Promise<SecretVersion[]>;
  /** Removes the secret and all its values. @throws SECRET_UNKNOWN */
  remove(name: string, change: Change): Promise<void>;
  /**
   * Encrypts again with the key `keyId` the data keys of up to `limit` versions of secrets, and of up to `limit` second factors;
   * those that have this key already are skipped.
   * @returns the number of data keys changed, and the number left
   */
  rewrap(
    keyId: string,
    wrap: (old: Omit<Sealed, "sealed">, place: SecretPlace) => Omit<Sealed, "sealed">,
    limit: number,
    change: Change,
  ): Promise<{ rewrapped: number; left: number }>;
  /**
   * Returns the encrypted value for a claimed run. @param version null: the present version
   * @throws FENCE_STALE if the run no longer has this claim, SECRET_UNKNOWN, SECRET_FORBIDDEN
   */
  sealedFor(asking: AskingRun, name: string, version: number | null): Promise<Sealed & SecretPlace>;
}
