/** The store's row of one grace lock. */
export interface GraceLockRecordRow {
  /** Changes with every change of the holder or the record, but not with a beat. */
  version: number;
  /** The fence of the present holding, or of the last one if there is no holder. */
  fence: number;
  /** The holding that has the lock; null: there is no holder. */
  holder: string | null;
  beat: number;
  /** How long the holder may be silent, ms. */
  timeoutMs: number;
  /** Data that the lock's users keep there. */
  record: object;
}

/** Rows that are held by heartbeats. Every write is a compare-and-set; the holder's name is unique to one holding. */
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
  /** Renews the lock. @returns whether this holder still holds it */
  beat(name: string, holder: string): Promise<boolean>;
  /** Writes the record, and with `release` also gives the lock up. @returns whether this holder held the lock */
  write(name: string, holder: string, record: object, release: boolean): Promise<boolean>;
  /** Ends a holding, unless it has beaten since `beat` (null: in any case). @returns whether this call ended it */
  vacate(name: string, holder: string, beat: number | null): Promise<boolean>;
}
