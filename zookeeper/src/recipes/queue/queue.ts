import type { CallOptions, Data } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import type { ConsumeOptions, Consumer, ItemHandler } from "./consuming.ts";
import { idInName, idPrefix, plainNames, plainPrefix } from "./names.ts";
import { type QueueOptions, QueuePath } from "./path.ts";

export interface PutOptions extends CallOptions {
  /**
   * A name for the item, which need not be unique; `/` and `|` become `_`. As in Java, either all items of a queue have an id, or none has.
   */
  readonly id?: string;
}

const putNames: ReadonlySet<string> = new Set<keyof PutOptions>(["id", "signal"]);

/**
 * A first-in, first-out queue; compatible with Java Curator's DistributedQueue on the same path, or with DistributedIdQueue if items have
 * ids. New items start in order; a failed item is tried again later. With one consumer and `concurrency: 1`, each item ends before the
 * next starts.
 */
export class Queue {
  readonly #queue: QueuePath;

  /** Sends no request yet. @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: QueueOptions = {}) {
    this.#queue = new QueuePath(zk, path, plainNames, options);
  }

  /**
   * Puts an item into the queue. @returns the name of the item's node
   * @throws CONNECTION_LOSS if it is unknown whether the item was put; DATA_TOO_LARGE, NO_AUTH, CLOSED, …
   */
  put(item: Data, options: PutOptions = {}): Promise<string> {
    return this.putAll([item], options);
  }

  /** Puts several items into one node. One consumer processes them, one after another. See `put`. */
  async putAll(items: readonly Data[], options: PutOptions = {}): Promise<string> {
    this.#queue.checkPutOptions(options, putNames);
    const { id } = options;
    return this.#queue.put(id === undefined ? plainPrefix : idPrefix(id), items, options);
  }

  /**
   * Deletes the items with this id that no consumer has taken. An item keeps its id when it is put back after a failed attempt.
   * @returns how many nodes were deleted
   * @throws CONNECTION_LOSS if a node does not exist any more and it is unknown whether this call or a consumer deleted it
   */
  async remove(id: string, options: CallOptions = {}): Promise<number> {
    const sought = idInName(id);
    return this.#queue.remove((item) => item.id === sought, options);
  }

  /** Reads the number of nodes in the queue, including those of items that are being processed with a lock. */
  size(options: CallOptions = {}): Promise<number> {
    return this.#queue.size(options);
  }

  /**
   * Starts a consumer; resolves once it has listed the queue. @throws NO_AUTH, or another error that makes the queue unusable; ABORTED,
   * CLOSED, OPTION_INVALID
   */
  consume(handler: ItemHandler, options: ConsumeOptions = {}): Promise<Consumer> {
    return this.#queue.consume(handler, options);
  }

  /** Closes this queue's consumers (see Consumer.close); later calls of `put`, `remove` and `consume` reject. Never rejects. */
  close(): Promise<void> {
    return this.#queue.close();
  }
}
