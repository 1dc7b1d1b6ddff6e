/**
 * A token's position in a lock's queue. The first `permits` tokens of a queue hold the permits, so when one of them leaves, its
 * permit passes to the next token without a further write.
 */
export interface Standing {
  /** The position in the queue, from 1; null if the token is not in the queue. */
  readonly rank: number | null;
  /** A decimal number that increases along the queue; null if the token is not in the queue. */
  readonly fence: string | null;
  /** The number of permits of this lock, as given by the first token in the queue. */
  readonly permits: number;
  /** The sessions that hold the permits; empty if the token itself holds a permit. */
  readonly holders: readonly SeenSession[];
}

/** A session as read at one moment. */
export interface SeenSession {
  readonly session: number;
  /** The session's heartbeat counter; null if the session no longer exists. */
  readonly beat: number | null;
  readonly timeoutMs: number;
  /**
   * The time in ms since the session's last heartbeat, by the store's clock. It only hints at which sessions to watch, and ends no
   * session.
   */
  readonly silentMs: number;
}

export interface LockEntry {
  readonly name: string;
  readonly token: string;
  readonly permits: number;
  /** True: join the queue even if all permits are held. */
  readonly wait: boolean;
  /** The upper 32 bits of the fence. */
  readonly era: number;
  readonly nowMs: number;
}

export interface LockLine {
  readonly name: string;
  readonly permits: number;
  /** Tokens in the order of the queue. */
  readonly line: readonly string[];
}

export interface LockPulse {
  /** False if this session has been ended. */
  readonly alive: boolean;
  /** The queues of those requested names that have tokens. */
  readonly lines: readonly LockLine[];
  /** The sessions of all tokens in these queues. */
  readonly sessions: readonly SeenSession[];
}

/**
 * Queues of tokens; heartbeats of the processes' sessions keep the tokens valid. A token is `<session>.<number>`, so it names its session.
 * Each change of a queue is one statement on one row, so the row's lock alone decides the order.
 */
export interface LockStore {
  open(timeoutMs: number, nowMs: number): Promise<number>;
  /** Sends the session's heartbeat, and returns the queues of the given names. Idempotent. */
  beat(session: number, names: readonly string[], nowMs: number): Promise<LockPulse>;
  /**
   * Ends a session if its heartbeat counter is still `beat` (null: in any case). Its tokens remain in their queues until `evict` removes
   * them, and count as dead.
   */
  end(session: number, beat: number | null): Promise<void>;
  /**
   * Appends the token to the queue. Idempotent: a token that is already in the queue keeps its position. The token is not
   * appended if its number of permits differs from that of the tokens in the queue, if the queue has `limits.lockLine` tokens, nor,
   * without `wait`, if it would not get a permit at once.
   */
  enter(entry: LockEntry): Promise<Standing>;
  /**
   * Removes the token from the queue, and signals the token that now gets a permit. Idempotent.
   * @returns whether the token was in the queue
   */
  leave(name: string, token: string): Promise<boolean>;
  /** Removes these tokens, whose sessions have ended, from a queue, and signals the tokens that then hold permits. Idempotent. */
  evict(name: string, tokens: readonly string[]): Promise<void>;
  /** Deletes the locks of the given names whose queues contain no tokens. Fences continue to increase if a name is used again. */
  forget(names: readonly string[]): Promise<void>;
  /** Returns a number higher than every number returned before; used for the upper half of fences. */
  nextBase(): Promise<number>;
}
