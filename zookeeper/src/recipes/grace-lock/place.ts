/**
 * The interface between the grace lock and the service in which it is stored (the place). ZooKeeper nodes are one place (nodes.ts); the
 * scheduler has another one, a database row with a heartbeat. A place makes each write conditional on the version that was read
 * (compare-and-set).
 */

/** The last use of the lock. It is shown to people, and helps to decide whether the work must be repeated. */
export interface LastUse {
  readonly owner: string;
  /** The fence in decimal digits, because JSON numbers cannot represent every 64-bit number. */
  readonly fence: string;
  /** Epoch ms by the owner's clock. */
  readonly beganMs: number;
  /** Epoch ms by the owner's clock; null if the use is still running, was stopped by a release, or its end could not be recorded. */
  readonly endedMs: number | null;
  /** The text that `Use.note` wrote; null if there is none. */
  readonly note: string | null;
}

/** The data that the place stores about the lock, also while it has no holder. */
export interface LockRecord {
  /** The last holder's name, which stays the same across sessions and restarts. */
  readonly owner: string;
  /** A random id of the owner's lock object: new after each start of the program. */
  readonly life: string;
  /** The holder's grace in ms: when it vanishes, all other contenders wait at least this long. */
  readonly graceMs: number;
  /** True if the holder released the lock. Contenders then need not wait for a grace. */
  readonly released: boolean;
  /** The last use, perhaps by an earlier owner, if the last owner vanished before it used the lock. Null if the lock was never used. */
  readonly use: LastUse | null;
}

/** The state of the lock as it was read from the place at one moment. */
export interface Sight {
  /** True if the lock has a holder, which may be this process. */
  readonly held: boolean;
  /** The stored record; undefined if the lock was never held. */
  readonly record: LockRecord | undefined;
  /** A version that changes whenever the record does. Two readings of a vacant lock with equal versions show the same vacancy. */
  readonly version: string;
  /**
   * True if the place has lost its data (wiped, restored) while this process was running. A missing record then does not prove that the
   * lock was free.
   */
  readonly forgetful?: boolean;
}

/** One period in which this process holds the lock, until `signal` aborts. Taking the lock back begins a new holding. */
export interface Holding {
  readonly fence: bigint;
  /** Aborts when the holding ends by this process's own clock, which is before any other contender can find the lock vacant. */
  readonly signal: AbortSignal;
  /**
   * The time in ms until this holding ends, unless the lock's service confirms the holding again in the meantime. It is computed from the
   * monotonic clock each time the property is read; 0 once the holding has ended.
   */
  readonly remainingMs: number;
  /** True if the state that was read shows this holding. */
  seenIn(sight: Sight): boolean;
  /** Writes the record. @returns false, without any change, if the lock is no longer held */
  write(record: LockRecord): Promise<boolean>;
  /** Releases the lock and writes the last record. @returns false, without any change, if the lock was no longer held */
  release(record: LockRecord): Promise<boolean>;
}

export interface LockPlace {
  /** The lock's name, for messages. */
  readonly name: string;
  /**
   * The random ids (`life`) of the lock objects in this process. A holder with the same owner and any other id is left over from a former
   * process of this owner.
   */
  readonly lives: Set<string>;
  /**
   * Reads the state of the lock. Waits for a connection without a time limit.
   * @throws CLOSED, ABORTED, or a permanent error
   */
  look(signal?: AbortSignal): Promise<Sight>;
  /**
   * Takes the lock if it has not changed since `sight`. A holder in `sight` is replaced in the same transaction: it belongs to an earlier
   * session of this process, or to a former process of the same owner. If an answer is lost, the promise settles only once the outcome is
   * known or the session has ended.
   * @returns undefined if the lock could not be taken; the caller must read the state again
   */
  take(sight: Sight, record: LockRecord): Promise<Holding | undefined>;
  /** Calls `changed` whenever the state may have changed, sometimes without a change. @returns a function that ends the watch */
  watch(changed: () => void): () => void;
}

/** The clock of a grace lock. Tests use their own. */
export interface LockClock {
  /** Ms since an arbitrary moment; never jumps. */
  monotonic(): number;
  /** Epoch ms. This time is only recorded, never compared. */
  wall(): number;
  /** Calls `fire` once, after `ms` at the earliest. @returns a function that cancels the timer */
  after(ms: number, fire: () => void): () => void;
}

export const lockClock: LockClock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  after(ms, fire) {
    const timer = setTimeout(fire, Math.min(ms, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
};
