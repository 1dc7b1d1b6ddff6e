export interface Order {
  party: string;
  /** The number of contenders of this process. */
  contenders: number;
  forMs: number;
  postgres: string;
  zookeeper: string;
  redis: string;
  /** The name of the lock, and of everything it needs: fresh for each order. */
  name: string;
}

export interface Contended {
  /** One entry for each contender. */
  acquired: number[];
  waitMs: number[];
  /**
   * Times by the machine's monotonic clock, which its processes share: alternately when a contender got the lock and when it
   * released it.
   */
  heldNs: BigInt64Array;
  cpuUs: number;
}

/** A way to lock. */
export interface Party {
  /** @returns a function that releases the lock */
  acquire(contender: number): Promise<() => Promise<unknown>>;
  close(): Promise<unknown>;
}

/** The longest wait for the lock, in ms; longer than a measurement lasts. */
export const patienceMs = 60_000;
export const ttlMs = 10_000;
