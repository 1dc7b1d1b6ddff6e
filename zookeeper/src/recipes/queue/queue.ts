import type { CallOptions, Data } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import type { ConsumeOptions, Consumer, ItemHandler } from "./consuming.ts";
import { idInName, idPrefix, plainNames, plainPrefix } from "./names.ts";
import { type QueueOptions, QueuePath } from "./path.ts";

export interface PutOptions extends CallOptions {
  /** A name for the item, not unique; `/` and `|` become `_`. All or none of a queue's items should have one, as in Java. */
  readonly id?: string;
}

const putNames: ReadonlySet<string> = new Set<keyof PutOptions>(["id", "signal"]);

/**
 * A first-in, first-out queue; compatible with Java Curator's DistributedQueue on the same path, or with DistributedIdQueue if
 * items have ids. Items start in order; with one consumer and `concurrency: 1`, each item ends before the next starts.
 */
export class Queue {
  readonly #queue: QueuePath;

  /** Sends no request yet. @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: QueueOptions = {}) {
    this.#queue = new QueuePath(zk, path, plainNames, options);
  }

  /**
   * @returns the name of the item's node
   * @throws CONNECTION_LOSS if it is unknown whether it was put; DATA_TOO_LARGE, NO_AUTH, CLOSED, …
   */
  put(item: Data, options: PutOptions = {}): Promise<string> {
    return this.putAll([item], options);
  }

  /** Puts several items into one node; one consumer consumes them, one after another. See `put`. */
  async putAll(items: readonly Data[], options: PutOptions = {}): Promise<string> {
    this.#queue.checkPutOptions(options, putNames);
    const { id } = options;
    return this.#queue.put(id === undefined ? plainPrefix : idPrefix(id), items, options);
  }

  /**
   * Removes the items with this id that no consumer has taken. An item keeps its id when it goes back after a failed attempt.
   * @returns how many nodes were removed
   * @throws CONNECTION_LOSS if a node is gone and it is unknown whether this call removed it or a consumer did
   */
  async remove(id: string, options: CallOptions = {}): Promise<number> {
    const sought = idInName(id);
    return this.#queue.remove((item) => item.id === sought, options);
  }

  /** The number of nodes in the queue: waiting items and items in work. */
  size(options: CallOptions = {}): Promise<number> {
    return this.#queue.size(options);
  }

  /** Resolves once the consumer has listed the queue. @throws NO_AUTH, or another error that makes the queue unusable */
  consume(handler: ItemHandler, options: ConsumeOptions = {}): Promise<Consumer> {
    return this.#queue.consume(handler, options);
  }

  /** Closes its consumers (see Consumer.close); `put` rejects from now on. Never rejects. */
  close(): Promise<void> {
    return this.#queue.close();
  }
}
