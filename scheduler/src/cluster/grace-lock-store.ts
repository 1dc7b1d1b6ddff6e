/** The store's row of one grace lock. */
export interface GraceLockRecordRow {
  /** Changes with every change of holder or record, not with a beat. */
  version: number;
  /** The fence of the present holding, or of the last one. */
  fence: number;
  /** The holding that has the lock; null: no holder. */
  holder: string | null;
  beat: number;
  /** For how long the holder may be silent. */
  timeoutMs: number;
  /** Data that the lock's users keep there. */
  record: object;
}

/** Rows that a heartbeat holds. Every write is a compare-and-set; the holder is a name unique to one holding. */
export interface GraceLockStore {
  /** @returns null if the lock was never held */
  read(name: string): Promise<GraceLockRecordRow | null>;
  /**
   * Takes the lock if its version is still this one (null: it was never held) and `replaced` is its holder (null: no holder).
   * @returns the fence, one more than the last; null if the lock could not be taken
   */
  take(
    name: string,
    version: number | null,
    { holder, replaced }: { holder: string; replaced: string | null },
    timeoutMs: number,
    record: object,
  ): Promise<{ fence: number } | null>;
  /** @returns whether this holder still holds the lock */
  beat(name: string, holder: string): Promise<boolean>;
  /** Writes the record, and with `release` gives the lock up. @returns whether it was held */
  write(name: string, holder: string, record: object, release: boolean): Promise<boolean>;
  /** Ends a holding, unless it has beaten since (null: in any case). @returns whether this did it */
  vacate(name: string, holder: string, beat: number | null): Promise<boolean>;
}
