/** A token's position in a name's line. The first `permits` tokens of a line hold a permit, so no write is needed to grant one. */
export interface Standing {
  /** 1 is the first; null: not in line. */
  readonly rank: number | null;
  /** In decimal; rises along the line. null: not in line. */
  readonly fence: string | null;
  /** The number of permits that the tokens in line have agreed on. */
  readonly permits: number;
  /** For a token that cannot hold yet or was not let in: the sessions that hold permits. */
  readonly holders: readonly SeenSession[];
}

/** A session as one reading shows it. */
export interface SeenSession {
  readonly session: number;
  /** null: there is no such session any more. */
  readonly beat: number | null;
  readonly timeoutMs: number;
  /** Time since its last heartbeat by the store's clock: only a hint that the session is worth watching. */
  readonly silentMs: number;
}

export interface LockEntry {
  readonly name: string;
  readonly token: string;
  readonly permits: number;
  /** Get in line even if all permits are held. */
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
  /** The lines of the names that were asked for, where there is one. */
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
  /** Proves that the session lives, and returns the lines. Repeatable. */
  beat(session: number, names: readonly string[], nowMs: number): Promise<LockPulse>;
  /** Ends a session, if its beat is still `beat` (null: in any case). Its tokens stay in their lines, and count as dead. */
  end(session: number, beat: number | null): Promise<void>;
  /**
   * Puts the token at the end of the line; a token already in line stays where it is, so this may be repeated. Lets no token in with
   * another number of permits than the tokens in line have, nor, without `wait`, a token that would not hold at once.
   */
  enter(entry: LockEntry): Promise<Standing>;
  /** Takes the token out of the line, and signals the token that holds a permit instead. Repeatable. @returns whether it was in line */
  leave(name: string, token: string): Promise<boolean>;
  /** Takes the tokens of ended sessions out of a line. Repeatable. */
  evict(name: string, tokens: readonly string[]): Promise<void>;
  /** Deletes names without holders and waiters; fences go on rising all the same. */
  forget(names: readonly string[]): Promise<void>;
  /** A number above all that were returned before: the higher half of a fence. */
  nextBase(): Promise<number>;
}
