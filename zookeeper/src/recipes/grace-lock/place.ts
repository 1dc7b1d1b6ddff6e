/**
 * The port of the grace lock: the place where it is held. ZooKeeper's nodes are one place (nodes.ts); a row in a database with a
 * heartbeat can be another. A place decides only by compare-and-set: the version of a sight is the condition of the next write.
 */

/** The last use of the lock: shown to people, and the basis for deciding whether the work must be repeated. */
export interface LastUse {
  readonly owner: string;
  /** Decimal, because JSON has no large numbers. */
  readonly fence: string;
  /** Epoch ms by the owner's clock. */
  readonly beganMs: number;
  /** Epoch ms by the owner's clock. null: the use has not ended, was stopped by a release, or its end could not be recorded. */
  readonly endedMs: number | null;
  /** The text that the use left, see `Use.note`. */
  readonly note: string | null;
}

/** The data that the place stores about the lock, even while there is no holder. */
export interface LockRecord {
  /** The last holder's name, which stays the same across sessions and restarts. */
  readonly owner: string;
  /** A random id of the owner's process: new each time the program starts. */
  readonly life: string;
  /** ms: all other contenders wait at least this long when the holder vanishes. */
  readonly graceMs: number;
  /** True if the holder released the lock regularly: then there is no grace. */
  readonly released: boolean;
  /** The last use; perhaps by an earlier owner, if the last owner vanished before it used the lock. */
  readonly use: LastUse | null;
}

/** The state of the lock at one moment, as read from the place. */
export interface Sight {
  /** The lock has a holder, perhaps this process. */
  readonly held: boolean;
  /** undefined if the lock was never held. */
  readonly record: LockRecord | undefined;
  /** Changes with every change of the record: two sights of a vacant lock with equal versions show the same vacancy. */
  readonly version: string;
  /**
   * The place lost its data (wiped, restored) while this process lived: the absence of a record does not prove that the lock was
   * free.
   */
  readonly forgetful?: boolean;
}

/** The lock, held by this process, until `signal` aborts. It never comes back: a reclaim is a new holding. */
export interface Holding {
  readonly fence: bigint;
  /** Aborts when the holding is over by this process's own clock, which is before any other contender can find the lock vacant. */
  readonly signal: AbortSignal;
  /**
   * ms until the holding is over, unless the place confirms it again before; by the monotonic clock at the moment of the call, 0
   * once over.
   */
  readonly remainingMs: number;
  /** True if the sight shows this holding. */
  seenIn(sight: Sight): boolean;
  /** Writes the record. @returns false, and changes nothing, if the lock is no longer held */
  write(record: LockRecord): Promise<boolean>;
  /** Releases the lock and writes a last record. @returns false, and changes nothing, if the lock was no longer held */
  release(record: LockRecord): Promise<boolean>;
}

export interface LockPlace {
  /** The name of the lock, for messages. */
  readonly name: string;
  /**
   * The lives that currently contend from this process. A holder of the same owner with any other life was left behind by a former
   * process of this owner.
   */
  readonly lives: Set<string>;
  /**
   * Reads the state of the lock. Waits for a connection without a limit.
   * @throws CLOSED, ABORTED, or an error that does not pass by itself
   */
  look(signal?: AbortSignal): Promise<Sight>;
  /**
   * Takes the lock if it has not changed since `sight`. A holder in the sight is replaced in the same step: it belongs to an
   * earlier session of this process, or to a former process of the same owner. If an answer is lost, the promise settles only once
   * the outcome is known, or once the session, and with it the holding, is over.
   * @returns undefined if the lock could not be taken: look again
   */
  take(sight: Sight, record: LockRecord): Promise<Holding | undefined>;
  /** Calls `changed` whenever the state may have changed, perhaps too often. @returns a function that ends the watch */
  watch(changed: () => void): () => void;
}

/** The clock of a grace lock; tests pass their own. */
export interface LockClock {
  /** ms from an arbitrary zero; never steps. */
  monotonic(): number;
  /** Epoch ms; only recorded, never compared. */
  wall(): number;
  /** Calls `fire` once, `ms` from now at the earliest. @returns a function that cancels the timer */
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
