/** The store's report about itself, with every heartbeat and on every new connection. */
export interface StandingRow {
  /** True if the last writes are present and no recovery is under way. */
  whole: boolean;
  /** The number of the last recovery. */
  recovery: number;
  /** The timeline of the server's log; if it is not reported, the server's start time after "start"; null: neither is known. */
  timeline: string | null;
  /** The id that the server and its standbys share; null: not reported. */
  system: string | null;
  /** True if a standby, or another reader of the log, is connected. */
  standby: boolean;
}

/** Compares timelines of the log. If start times are used instead of timelines, a promoted standby may have the earlier start time. */
export const comesBefore = (timeline: string, known: string): boolean =>
  [timeline, known].every((one) => /^[0-9A-F]{8}$/.test(one)) && timeline < known;

/** The server that a heartbeat or a proof of life reached; null: not reported. */
export const serverOf = ({ timeline, system }: Pick<StandingRow, "timeline" | "system">): string | null =>
  timeline === null && system === null ? null : `${system} ${timeline}`;

/** The select list for a `StandingRow`. */
export const standingSql = (s: string) => `
  ${s}.whole() as whole, (select recovery from ${s}.cluster) as recovery, ${s}.log_timeline() as timeline, ${s}.store_system() as system,
  exists (select from pg_stat_get_wal_senders()) as standby`;

/** The recovery, as the rest of the store uses it: see recovery.ts. */
export interface Recovering {
  /** Takes part in the recovery, if there is one. Resolves when work may go on. */
  join(): Promise<void>;
  /** Resolves when this process has reported its memory, which may be long before other processes have. */
  told(): Promise<void>;
  /**
   * Applies the result of a connection or a heartbeat. If a recovery took place unnoticed, this process reports now. @param recovery null:
   * not known
   */
  found(whole: boolean, recovery: number | null): void;
  /**
   * Called when more was acknowledged to this process than the store has, so the store has lost data even if its log does not show that.
   */
  wentBack(why: string): Promise<void>;
}
