/** What the store keeps of one grace lock. */
export interface GraceLockRecordRow {
  /** Changes with every change of holder or record, not with a beat. */
  version: number;
  /** Of the present holding, or the last one. */
  fence: number;
  /** The holding that has it; null: nobody. */
  holder: string | null;
  beat: number;
  /** For how long the holder may be silent. */
  timeoutMs: number;
  /** Whatever the lock's users keep there. */
  record: object;
}

/** Rows that a heartbeat holds. Every write is a compare-and-set; the holder is a name no other holding has. */
export interface GraceLockStore {
  /** @returns null when it was never held */
  read(name: string): Promise<GraceLockRecordRow | null>;
  /**
   * Takes it where its version is still this one (null: it was never held) and `replaced` holds it (null: nobody).
   * @returns the fence, one more than the last; null when it was not to be had
   */
  take(
    name: string,
    version: number | null,
    { holder, replaced }: { holder: string; replaced: string | null },
    timeoutMs: number,
    record: object,
  ): Promise<{ fence: number } | null>;
  /** @returns whether it is held still */
  beat(name: string, holder: string): Promise<boolean>;
  /** Writes the record, and with `release` gives the lock up. @returns whether it was held */
  write(name: string, holder: string, record: object, release: boolean): Promise<boolean>;
  /** Ends a holding, unless it has beaten since (null: in any case). @returns whether this did it */
  vacate(name: string, holder: string, beat: number | null): Promise<boolean>;
}
