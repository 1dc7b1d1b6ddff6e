export interface Order {
  party: string;
  /** The number of contenders of this process. */
  contenders: number;
  forMs: number;
  postgres: string;
  zookeeper: string;
  redis: string;
  /** Name of the lock; prefix of its keys or paths. Each order uses a new name. */
  name: string;
}

export interface Contended {
  /** The number of acquisitions of each contender. */
  acquired: number[];
  waitMs: number[];
  /**
   * Times in ns on the machine-wide monotonic clock, in pairs: when a contender acquired the lock and when it released it.
   */
  heldNs: BigInt64Array;
  cpuUs: number;
}

/** One kind of lock under test. */
export interface Party {
  /** @returns a function that releases the lock */
  acquire(contender: number): Promise<() => Promise<unknown>>;
  close(): Promise<unknown>;
}

/** The longest wait for the lock, in ms; a measurement ends sooner. */
export const patienceMs = 60_000;
export const ttlMs = 10_000;
