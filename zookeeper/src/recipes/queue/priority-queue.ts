import type { CallOptions, Data } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import type { ConsumeOptions, Consumer, ItemHandler } from "./consuming.ts";
import { priorityNames, priorityPrefix } from "./names.ts";
import { type QueueOptions, QueuePath } from "./path.ts";

export interface PriorityPutOptions extends CallOptions {
  /** A signed 32-bit integer. The item with the lowest number comes first. */
  readonly priority: number;
}

const putNames: ReadonlySet<string> = new Set<keyof PriorityPutOptions>(["priority", "signal"]);

/**
 * A queue by priority: the lowest number comes first; items with equal priorities are first in, first out. Compatible with Java Curator's
 * DistributedPriorityQueue on the same path. A failed item keeps its priority.
 */
export class PriorityQueue {
  readonly #queue: QueuePath;

  /** Sends no request yet. @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: QueueOptions = {}) {
    this.#queue = new QueuePath(zk, path, priorityNames, options);
  }

  /**
   * Puts an item into the queue. @returns the name of the item's node
   * @throws CONNECTION_LOSS if it is unknown whether the item was put; DATA_TOO_LARGE, OPTION_INVALID, NO_AUTH, CLOSED, …
   */
  put(item: Data, options: PriorityPutOptions): Promise<string> {
    return this.putAll([item], options);
  }

  /** Puts several items with the same priority into one node. One consumer processes them, one after another. See `put`. */
  async putAll(items: readonly Data[], options: PriorityPutOptions): Promise<string> {
    this.#queue.checkPutOptions(options, putNames);
    return this.#queue.put(priorityPrefix(options.priority), items, options);
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

  /** Closes this queue's consumers (see Consumer.close); later calls of `put` and `consume` reject. Never rejects. */
  close(): Promise<void> {
    return this.#queue.close();
  }
}
