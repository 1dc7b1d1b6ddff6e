export interface Order {
  party: string;
  /** Of this process. */
  contenders: number;
  forMs: number;
  postgres: string;
  zookeeper: string;
  redis: string;
  /** Of the lock, and of whatever it needs: fresh for each order. */
  name: string;
}

export interface Contended {
  /** Of each contender. */
  acquired: number[];
  waitMs: number[];
  /** On the machine's monotonic clock, which its processes share: when one had it and when it gave it up, in turn. */
  heldNs: BigInt64Array;
  cpuUs: number;
}

/** A way to lock. */
export interface Party {
  /** @returns what gives it up */
  acquire(contender: number): Promise<() => Promise<unknown>>;
  close(): Promise<unknown>;
}

/** How long one waits for it at most; longer than a cell lasts. */
export const patienceMs = 60_000;
export const ttlMs = 10_000;
