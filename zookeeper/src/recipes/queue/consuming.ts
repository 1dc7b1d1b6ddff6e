/** The input of handlers, and the options for consuming a queue. */

export interface QueueItem {
  readonly data: Buffer;
  /** The name of its node, without the path. */
  readonly name: string;
  /** From 1. With a lock path, attempts whose process ended during them count too. */
  readonly attempt: number;
  /** With a lock path: larger for every later attempt of any consumer (the lock's czxid). */
  readonly fence: bigint | undefined;
  /** Aborts when the item's lock is lost with its session, so that another may run it, or the consumer is stopped. */
  readonly signal: AbortSignal;
  /** For a delay queue: the epoch ms it was put for. 0 if Java sent it back without its time. */
  readonly dueMs?: number;
  /** For a priority queue. */
  readonly priority?: number;
  /** For a queue with ids. */
  readonly id?: string;
}

/** An item whose handler threw, or that is no item of Curator's layout. */
export interface ItemFailure {
  readonly name: string;
  readonly attempt: number;
  readonly error: unknown;
  /**
   * Epoch ms before which it is not tried again; undefined: it was moved to the poison path. If the move failed, which
   * `onTrouble` reports, it stays in place, and without a lock path it is lost.
   */
  readonly retryAtMs: number | undefined;
}

export interface ConsumeOptions {
  /** Items that run at a time. Default 1, which keeps their order; of a delay queue 100. */
  readonly concurrency?: number;
  /** The number of attempts after which a failing item is set aside. Default 10. */
  readonly attempts?: number;
  /** ms to wait after this number of failures, from 1 on. Default: from 1 s on, doubling each time up to 5 min, jittered. */
  readonly backoffMs?: (failures: number) => number;
  /** For a delay queue with a lock path: how many ms before its time an item is locked, so that a timer can start it. Default 250. */
  readonly claimAheadMs?: number;
  /** Stops at once: aborts the items that run. `close` lets them end. */
  readonly signal?: AbortSignal;
  /** Receives each failure of an item. Must not throw. */
  readonly onFailure?: (failure: ItemFailure) => void;
  /** Receives errors that keep the consumer from working, while it goes on trying. Must not throw. */
  readonly onTrouble?: (error: unknown) => void;
}

/** A handler that throws or rejects fails its item, which goes back and is tried again later. */
export type ItemHandler = (item: QueueItem) => unknown;

export interface Consumer {
  /** The number of known items: those that wait, and those in work. */
  readonly known: number;
  /** Resolves when it was closed; rejects with the error that makes the queue unusable (say NO_AUTH): it does not go on then. */
  readonly ended: Promise<void>;
  /** Takes no more items, gives back what has not started, and waits for the handlers that run. Never rejects. */
  close(): Promise<void>;
}
