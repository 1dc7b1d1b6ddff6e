/** What the store reports about itself with every heartbeat and on every new connection. */
export interface StandingRow {
  /** True if the store has the last acknowledged writes and no recovery is in progress. */
  whole: boolean;
  /** The number of the last recovery. */
  recovery: number;
  /** The timeline of the server's log; if the server hides it, "start" and the server's start time; null if neither is known. */
  timeline: string | null;
  /** The id that the server and its standbys share; null if the server hides it. */
  system: string | null;
  /** True if a standby, or another reader of the log, is connected. */
  standby: boolean;
  /** True if enqueues may be acknowledged before they are on the server's disk, so that a crash of the server may lose them. */
  relaxed: boolean;
}

/**
 * True if the first timeline is older. Start times in place of timelines are never compared: a promoted standby may have an earlier one.
 */
export const comesBefore = (timeline: string, known: string): boolean =>
  [timeline, known].every((one) => /^[0-9A-F]{8}$/.test(one)) && timeline < known;

/** Identifies the server that a heartbeat reached, by system id and timeline; null if the server hides both. */
export const serverOf = ({ timeline, system }: Pick<StandingRow, "timeline" | "system">): string | null =>
  timeline === null && system === null ? null : `${system} ${timeline}`;

/** SQL: the select list for a `StandingRow`. */
export const standingSql = (s: string) => `
  ${s}.whole() as whole, (select recovery from ${s}.cluster) as recovery, ${s}.log_timeline() as timeline, ${s}.store_system() as system,
  exists (select from pg_stat_get_wal_senders()) as standby, (select relaxed from ${s}.cluster) as relaxed`;

/** SQL: records that the store's data is complete, until the server crashes: see migrations/0086-relaxed.ts. */
export const markIntactSql = (s: string) => `insert into ${s}.intact default values on conflict do nothing`;

/** The recovery after lost data, as the rest of the store uses it: see recovery.ts. */
export interface Recovering {
  /** Takes part in the recovery, if there is one. Resolves when the store accepts all writes again. */
  join(): Promise<void>;
  /** Resolves when this process has reported what it remembers, even if other processes have not reported yet. */
  told(): Promise<void>;
  /**
   * Resolves when this process takes part in no recovery, and has tried to write the verdicts that the store had lost. Never rejects.
   */
  settled(): Promise<void>;
  /**
   * Handles the state that a connection or a heartbeat returned. If a recovery was over before this process noticed it, this process
   * reports now.
   * @param recovery the number of the last recovery; null if it is not known
   */
  found(whole: boolean, recovery: number | null): void;
  /**
   * Called when a connection broke. If the server crashed, it may lack relaxed enqueues, so this process reads the store's state as soon as
   * the server is back, even if nothing else in this process needs the store.
   */
  lost(): void;
  /**
   * Called when this process remembers acknowledged writes that the store lacks, so that the store lost data even if its log hides this.
   */
  wentBack(why: string): Promise<void>;
}
