/** The items that handlers get, and the options for consuming a queue. */

export interface QueueItem {
  readonly data: Buffer;
  /** The name of the item's node, without the path. */
  readonly name: string;
  /** The number of this attempt, from 1. With a lock path, attempts whose process died count too. */
  readonly attempt: number;
  /** With a lock path: the lock's czxid, which is larger for each later attempt by any consumer. Otherwise undefined. */
  readonly fence: bigint | undefined;
  /**
   * Aborts when the consumer is stopped by its `signal` (not by `close`). With a lock path, also aborts when the session ends and with it
   * the lock, so that another consumer may process the item.
   */
  readonly signal: AbortSignal;
  /** Only in a delay queue: the epoch ms at which the item is due; 0 if a Java consumer put it back without its time. */
  readonly dueMs?: number;
  /** Only in a priority queue: the item's priority. */
  readonly priority?: number;
  /** Only in a queue with ids: the item's id. */
  readonly id?: string;
}

/** An item whose handler threw, or whose data does not have Curator's layout. */
export interface ItemFailure {
  readonly name: string;
  readonly attempt: number;
  readonly error: unknown;
  /**
   * Epoch ms of the earliest next attempt; undefined if the item was moved to the poison path. If putting back or moving fails, which
   * `onTrouble` reports, the item stays in the queue; without a lock path it is lost.
   */
  readonly retryAtMs: number | undefined;
}

export interface ConsumeOptions {
  /** The largest number of items that are processed concurrently. Default 1, which keeps their order; in a delay queue 100. */
  readonly concurrency?: number;
  /** The number of attempts after which a failing item is moved to the poison path. Default 10. */
  readonly attempts?: number;
  /**
   * Returns the ms to wait after the given number of failures, which is 1 or more. Default: about 1 s, doubled after each failure up to
   * 5 min, with jitter.
   */
  readonly backoffMs?: (failures: number) => number;
  /** In a delay queue with a lock path: an item is locked this many ms before its time, so that a timer can start it. Default 250. */
  readonly claimAheadMs?: number;
  /** Stops the consumer at once and aborts the running items, whereas `close` waits for them. */
  readonly signal?: AbortSignal;
  /** Called with each failure of an item. Must not throw. */
  readonly onFailure?: (failure: ItemFailure) => void;
  /** Called with errors after which the consumer retries. Must not throw. */
  readonly onTrouble?: (error: unknown) => void;
}

/**
 * Processes one item. If it throws or rejects, the item has failed: it is put back into the queue and tried again later, or moved to the
 * poison path after its last attempt.
 */
export type ItemHandler = (item: QueueItem) => unknown;

export interface Consumer {
  /** The number of known items, waiting or being processed. */
  readonly known: number;
  /**
   * Resolves once the consumer is closed; rejects with the error that makes the queue unusable (such as NO_AUTH), which also ends the
   * consumer.
   */
  readonly ended: Promise<void>;
  /** Claims no more items, puts back items that have not started, and waits for the running handlers. Never rejects. */
  close(): Promise<void>;
}
