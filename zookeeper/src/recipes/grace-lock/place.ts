/**
 * The port of the grace lock: the place where it is held. ZooKeeper's nodes are one place (nodes.ts); a row in a database with a
 * heartbeat can be another. A place decides only by compare-and-set: the version of a sight is the condition of the next write.
 */

/** The last time that the lock was used: for people, and to decide whether the work must be done again. */
export interface LastUse {
  readonly owner: string;
  /** Decimal, because JSON has no large numbers. */
  readonly fence: string;
  /** Epoch ms by the owner's clock. */
  readonly beganMs: number;
  /** null: it did not end, it was stopped by a release, or its end could not be recorded any more. */
  readonly endedMs: number | null;
  /** The text that the use left, see `Use.note`. */
  readonly note: string | null;
}

/** The data that the place keeps about the lock, also without a holder. */
export interface LockRecord {
  /** The last holder: a name that stays the same over sessions and restarts. */
  readonly owner: string;
  /** The life of that owner: a new one each time the program starts. */
  readonly life: string;
  /** Everyone else waits at least this long when the holder vanishes. */
  readonly graceMs: number;
  /** True if the holder released it in order: then there is no grace. */
  readonly released: boolean;
  /** Perhaps of an earlier owner, when the last one vanished before it did anything. */
  readonly use: LastUse | null;
}

/** The lock at one moment. */
export interface Sight {
  /** The lock has a holder, perhaps this process. */
  readonly held: boolean;
  /** undefined when it was never held. */
  readonly record: LockRecord | undefined;
  /** Changes with every change of the record: equal versions of a vacant lock are one and the same vacancy. */
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
  /** Aborts when it is over by this process's own clock, which is before anyone else can find it vacant. */
  readonly signal: AbortSignal;
  /** ms until the holding is over unless its life is proved again; by the monotonic clock at the call, 0 once over. */
  readonly remainingMs: number;
  /** True if this sight shows this holding. */
  seenIn(sight: Sight): boolean;
  /** @returns false, and nothing is changed, when it is not held any more */
  write(record: LockRecord): Promise<boolean>;
  /** Gives it up, with a last record. @returns false, and nothing is changed, when it was not held any more */
  release(record: LockRecord): Promise<boolean>;
}

export interface LockPlace {
  /** For messages. */
  readonly name: string;
  /**
   * The lives that contend from this process now. A holder of the same owner with another life than these is what a
   * former process of this owner left behind.
   */
  readonly lives: Set<string>;
  /**
   * Looks. Waits for a connection as long as that takes.
   * @throws CLOSED, ABORTED, or what will not mend by itself
   */
  look(signal?: AbortSignal): Promise<Sight>;
  /**
   * Takes the lock if it has not changed since `sight`. A holder in the sight is replaced in the same step: it belongs to an
   * earlier session of this process, or to a former process of the same owner. When this settles, an unknown outcome has become
   * known, or the session is over and the holding with it.
   * @returns undefined if the lock could not be taken: look again
   */
  take(sight: Sight, record: LockRecord): Promise<Holding | undefined>;
  /** Calls back whenever a look may find something else. It may be called too often. @returns ends it */
  watch(changed: () => void): () => void;
}

/** Time arrives as an argument. */
export interface LockClock {
  /** ms from an arbitrary zero; never steps. */
  monotonic(): number;
  /** Epoch ms; only ever recorded. */
  wall(): number;
  /** Calls once, `ms` from now at the earliest. @returns cancels it */
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
