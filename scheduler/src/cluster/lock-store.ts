/** Where a token stands in a name's line. The first so many of a line hold a permit, so nobody needs to be given one. */
export interface Standing {
  /** 1 is the first; null: not in line. */
  readonly rank: number | null;
  /** In decimal; rises along the line. null: not in line. */
  readonly fence: string | null;
  /** What those in line agreed on. */
  readonly permits: number;
  /** Of who cannot hold yet, or was not let in: the sessions that hold. */
  readonly holders: readonly SeenSession[];
}

/** A session as one reading shows it. */
export interface SeenSession {
  readonly session: number;
  /** null: there is no such session any more. */
  readonly beat: number | null;
  readonly timeoutMs: number;
  /** Since its last beat by the store's clock: a hint that it is worth while to watch it, and no more. */
  readonly silentMs: number;
}

export interface LockEntry {
  readonly name: string;
  readonly token: string;
  readonly permits: number;
  /** Get in line also where others hold. */
  readonly wait: boolean;
  /** The higher half of the fence. */
  readonly era: number;
  readonly nowMs: number;
}

export interface LockLine {
  readonly name: string;
  readonly permits: number;
  /** Tokens, the first first. */
  readonly line: readonly string[];
}

export interface LockPulse {
  /** False: another has ended this session. */
  readonly alive: boolean;
  /** Of the names asked for, those that have a line. */
  readonly lines: readonly LockLine[];
  /** Of everyone in these lines. */
  readonly sessions: readonly SeenSession[];
}

/**
 * Lines of tokens, kept alive by their processes' sessions. A token is `<session>.<number>`, so whoever looks at a line knows
 * whose each is. Every write is one statement on one row, so the row's lock is the only order there is.
 */
export interface LockStore {
  open(timeoutMs: number, nowMs: number): Promise<number>;
  /** Proves life, and learns how the lines stand. Repeatable. */
  beat(session: number, names: readonly string[], nowMs: number): Promise<LockPulse>;
  /** Ends a session, if its beat is still `beat` (null: in any case). What it has in lines stays there, and counts for dead. */
  end(session: number, beat: number | null): Promise<void>;
  /**
   * Gets in line, at its end; a token that is in it stays where it is, so this may be repeated. Lets nobody in who names
   * another number of permits than those who are in line, nor, without `wait`, who would not hold at once.
   */
  enter(entry: LockEntry): Promise<Standing>;
  /** Leaves the line, and tells the one who holds now instead. Repeatable. @returns whether it was in it */
  leave(name: string, token: string): Promise<boolean>;
  /** Takes those of ended sessions out of a line. Repeatable. */
  evict(name: string, tokens: readonly string[]): Promise<void>;
  /** Forgets names that nobody holds or waits for; fences rise all the same. */
  forget(names: readonly string[]): Promise<void>;
  /** A number above all before: the higher half of a fence. */
  nextBase(): Promise<number>;
}
