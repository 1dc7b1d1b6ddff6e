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
  /** On the machine's monotonic clock, which its processes share: when a contender had it and when it gave it up, in turn. */
  heldNs: BigInt64Array;
  cpuUs: number;
}

/** A way to lock. */
export interface Party {
  /** @returns a function that gives it up */
  acquire(contender: number): Promise<() => Promise<unknown>>;
  close(): Promise<unknown>;
}

/** The longest wait for it; longer than a cell lasts. */
export const patienceMs = 60_000;
export const ttlMs = 10_000;
