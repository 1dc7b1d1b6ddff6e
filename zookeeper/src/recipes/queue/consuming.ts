/** What a handler is given, and how a queue is consumed. */

export interface QueueItem {
  readonly data: Buffer;
  /** Of its node, without the path. */
  readonly name: string;
  /** From 1. With a lock path, attempts that ended with their process count too. */
  readonly attempt: number;
  /** With a lock path: larger for every later attempt of whomever (the lock's czxid). */
  readonly fence: bigint | undefined;
  /** Aborts when the item's lock is lost with its session, so that another may run it, or the consumer is stopped. */
  readonly signal: AbortSignal;
  /** Of a delay queue: epoch ms it was put for. 0 where Java sent it back without its time. */
  readonly dueMs?: number;
  /** Of a priority queue. */
  readonly priority?: number;
  /** Of a queue with ids. */
  readonly id?: string;
}

/** An item whose handler threw, or that is no item of Curator's layout. */
export interface ItemFailure {
  readonly name: string;
  readonly attempt: number;
  readonly error: unknown;
  /**
   * Epoch ms before which it is not tried again; undefined: it was set aside into the poison path. Where it could not be
   * moved, as `onTrouble` is told, it stays where it is, and without a lock path it is lost.
   */
  readonly retryAtMs: number | undefined;
}

export interface ConsumeOptions {
  /** Items that run at a time. Default 1, which keeps their order; of a delay queue 100. */
  readonly concurrency?: number;
  /** After so many an item that fails is set aside. Default 10. */
  readonly attempts?: number;
  /** ms to wait after so many failures, from 1 on. Default: from 1 s on twice as long each time, up to 5 min, jittered. */
  readonly backoffMs?: (failures: number) => number;
  /** Of a delay queue with a lock path: so early it locks what comes due, to start it from a timer. Default 250. */
  readonly claimAheadMs?: number;
  /** Stops at once: aborts the items that run. `close` lets them end. */
  readonly signal?: AbortSignal;
  /** Is told each failure of an item. Must not throw. */
  readonly onFailure?: (failure: ItemFailure) => void;
  /** Is told what keeps the consumer from working, while it goes on trying. Must not throw. */
  readonly onTrouble?: (error: unknown) => void;
}

/** What is thrown or rejected is a failure of the item; it goes back, and is tried again later. */
export type ItemHandler = (item: QueueItem) => unknown;

export interface Consumer {
  /** Items it knows of: those that wait, and those it works on. */
  readonly known: number;
  /** Resolves when it was closed; rejects with what makes the queue unusable (say NO_AUTH): it does not go on then. */
  readonly ended: Promise<void>;
  /** Takes no more items, gives back what has not started, and waits for the handlers that run. Never rejects. */
  close(): Promise<void>;
}
