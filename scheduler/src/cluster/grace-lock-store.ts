/** The store's row of one grace lock. */
export interface GraceLockRecordRow {
  /** Incremented with every change of the holder or of the record; heartbeats leave it unchanged. */
  version: number;
  /** The fence of the current holder, or of the last holder if there is none now. */
  fence: number;
  /** The id of the current holder; null if the lock is not held. */
  holder: string | null;
  beat: number;
  /** The holder loses the lock if it sends no heartbeat for this long, in ms. */
  timeoutMs: number;
  /** A JSON object that the users of the lock store with it. */
  record: object;
}

/** Locks that their holders keep by heartbeats. Every write is a compare-and-set; each acquisition uses a new, unique holder id. */
export interface GraceLockStore {
  /** Reads a lock; null if the lock was never held. */
  read(name: string): Promise<GraceLockRecordRow | null>;
  /**
   * Acquires the lock if its version is still `version` (null: it was never held) and its holder is still `replaced` (null: no holder).
   * @returns the new fence, higher than every earlier one; null if the lock has changed meanwhile
   */
  take(
    name: string,
    version: number | null,
    { holder, replaced }: { holder: string; replaced: string | null },
    timeoutMs: number,
    record: object,
  ): Promise<{ fence: number } | null>;
  /** Sends a heartbeat. @returns false if this holder no longer holds the lock */
  beat(name: string, holder: string): Promise<boolean>;
  /**
   * Writes the record; with `release`, also releases the lock.
   * @returns false if this holder no longer holds the lock, so nothing changed
   */
  write(name: string, holder: string, record: object, release: boolean): Promise<boolean>;
  /**
   * Removes the holder if it has sent no heartbeat since `beat` (null: removes it in any case).
   * @returns true if this call removed the holder
   */
  vacate(name: string, holder: string, beat: number | null): Promise<boolean>;
}
