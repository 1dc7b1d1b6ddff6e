/** The input of handlers, and the options for consuming a queue. */

export interface QueueItem {
  readonly data: Buffer;
  /** The name of the item's node, without the path. */
  readonly name: string;
  /** The number of this attempt, from 1. With a lock path, attempts that ended with their process count too. */
  readonly attempt: number;
  /** With a lock path: the lock's czxid, which is larger for every later attempt of any consumer. Otherwise undefined. */
  readonly fence: bigint | undefined;
  /**
   * Aborts when the consumer is stopped, or when the item's lock is lost with its session, so that another consumer may run the
   * item.
   */
  readonly signal: AbortSignal;
  /** For a delay queue: the epoch ms at which the item is due; 0 if Java sent it back without its time. */
  readonly dueMs?: number;
  /** For a priority queue. */
  readonly priority?: number;
  /** For a queue with ids. */
  readonly id?: string;
}

/** An item whose handler threw, or whose data does not have Curator's layout. */
export interface ItemFailure {
  readonly name: string;
  readonly attempt: number;
  readonly error: unknown;
  /**
   * Epoch ms of the earliest next attempt; undefined if the item was moved to the poison path. If the move failed, which
   * `onTrouble` reports, the item stays in place; without a lock path it is lost.
   */
  readonly retryAtMs: number | undefined;
}

export interface ConsumeOptions {
  /** The most items that run concurrently. Default 1, which keeps their order; for a delay queue 100. */
  readonly concurrency?: number;
  /** The number of attempts after which a failing item is set aside. Default 10. */
  readonly attempts?: number;
  /**
   * Returns the ms to wait after the given number of failures, from 1 on. Default: from 1 s on, doubling each time up to 5 min,
   * jittered.
   */
  readonly backoffMs?: (failures: number) => number;
  /** For a delay queue with a lock path: how many ms before its time an item is locked, so that a timer can start it. Default 250. */
  readonly claimAheadMs?: number;
  /** Stops the consumer at once: aborts the running items, whereas `close` lets them finish. */
  readonly signal?: AbortSignal;
  /** Receives each failure of an item. Must not throw. */
  readonly onFailure?: (failure: ItemFailure) => void;
  /** Receives errors that keep the consumer from working while it retries. Must not throw. */
  readonly onTrouble?: (error: unknown) => void;
}

/** Handles one item. If it throws or rejects, the item has failed: it goes back into the queue and is tried again later. */
export type ItemHandler = (item: QueueItem) => unknown;

export interface Consumer {
  /** The number of known items: waiting items and items in work. */
  readonly known: number;
  /**
   * Resolves once the consumer is closed; rejects with the error that makes the queue unusable (such as NO_AUTH) and ends the
   * consumer.
   */
  readonly ended: Promise<void>;
  /** Takes no more items, gives back items that have not started, and waits for the running handlers. Never rejects. */
  close(): Promise<void>;
}
