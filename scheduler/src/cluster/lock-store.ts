/** A token's position in a name's line. The first `permits` tokens of a line hold a permit, so no write is needed to grant one. */
export interface Standing {
  /** The position in the line, from 1; null: not in line. */
  readonly rank: number | null;
  /** A decimal number that rises along the line; null: not in line. */
  readonly fence: string | null;
  /** The number of permits that the tokens in line have agreed on. */
  readonly permits: number;
  /** For a token that holds no permit or was not let in: the sessions that hold permits. */
  readonly holders: readonly SeenSession[];
}

/** A session as read at one moment. */
export interface SeenSession {
  readonly session: number;
  /** null: the session no longer exists. */
  readonly beat: number | null;
  readonly timeoutMs: number;
  /** Time since its last heartbeat by the store's clock, ms: only a hint that the session is worth watching. */
  readonly silentMs: number;
}

export interface LockEntry {
  readonly name: string;
  readonly token: string;
  readonly permits: number;
  /** True: get in line even if all permits are held. */
  readonly wait: boolean;
  /** The higher half of the fence. */
  readonly era: number;
  readonly nowMs: number;
}

export interface LockLine {
  readonly name: string;
  readonly permits: number;
  /** Tokens, in the order of the line. */
  readonly line: readonly string[];
}

export interface LockPulse {
  /** False: another process has ended this session. */
  readonly alive: boolean;
  /** The lines of the requested names that have one. */
  readonly lines: readonly LockLine[];
  /** The sessions of all tokens in these lines. */
  readonly sessions: readonly SeenSession[];
}

/**
 * Lines of tokens, kept alive by their processes' sessions. A token is `<session>.<number>`, so a reader of a line sees which session each
 * token belongs to. Every write is one statement on one row, so the row's lock alone decides the order.
 */
export interface LockStore {
  open(timeoutMs: number, nowMs: number): Promise<number>;
  /** Proves that the session is alive, and returns the lines of these names. Repeatable. */
  beat(session: number, names: readonly string[], nowMs: number): Promise<LockPulse>;
  /** Ends a session if its beat is still `beat` (null: in any case). Its tokens stay in their lines, and count as dead. */
  end(session: number, beat: number | null): Promise<void>;
  /**
   * Puts the token at the end of the line; a token that is already in line keeps its place, so this may be repeated. Does not let in a
   * token whose number of permits differs from that of the tokens in line, nor, without `wait`, a token that would not get a permit at
   * once.
   */
  enter(entry: LockEntry): Promise<Standing>;
  /** Takes the token out of the line, and signals the token that now gets a permit. Repeatable. @returns whether the token was in line */
  leave(name: string, token: string): Promise<boolean>;
  /** Takes the tokens of ended sessions out of a line. Repeatable. */
  evict(name: string, tokens: readonly string[]): Promise<void>;
  /** Deletes names that have neither holders nor waiters; their fences go on rising if they are used again. */
  forget(names: readonly string[]): Promise<void>;
  /** Returns a number above all that were returned before, for the higher half of a fence. */
  nextBase(): Promise<number>;
}
