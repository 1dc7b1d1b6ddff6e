/** What the store says of itself with every beat and on every new connection. */
export interface StandingRow {
  /** What was written last is there, and no recovery is under way. */
  whole: boolean;
  /** The number of the last recovery. */
  recovery: number;
  /** Of the server's log, or "start" and when the server started where that is not told; null: neither is. */
  timeline: string | null;
  /** Stands for the server and its standbys; null: it is not told. */
  system: string | null;
  /** A standby, or whatever else reads the log, is connected. */
  standby: boolean;
}

/** Of timelines of the log. Where the start of the server stands for one, a standby that is promoted may have the earlier one. */
export const comesBefore = (timeline: string, known: string): boolean =>
  [timeline, known].every((one) => /^[0-9A-F]{8}$/.test(one)) && timeline < known;

/** Names the server that a beat or a proof of life reached; null: it does not tell. */
export const serverOf = ({ timeline, system }: Pick<StandingRow, "timeline" | "system">): string | null =>
  timeline === null && system === null ? null : `${system} ${timeline}`;

/** The list of a SELECT. */
export const standingSql = (s: string) => `
  ${s}.whole() as whole, (select recovery from ${s}.cluster) as recovery, ${s}.log_timeline() as timeline, ${s}.store_system() as system,
  exists (select from pg_stat_get_wal_senders()) as standby`;

/** What the rest of the store asks of its recovery: see recovery.ts. */
export interface Recovering {
  /** Takes part, if there is one. @returns when work may go on */
  join(): Promise<void>;
  /** @returns when this process has told what it remembers, which may be long before the others have */
  told(): Promise<void>;
  /** What a connection or a beat found. A recovery that took place unseen is caught up with. @param recovery null: not known */
  found(whole: boolean, recovery: number | null): void;
  /** This process was acknowledged more than the store has: it went back, whatever its log says. */
  wentBack(why: string): Promise<void>;
}
