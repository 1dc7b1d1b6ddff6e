import type { CallOptions, Data } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import type { ConsumeOptions, Consumer, ItemHandler } from "./consuming.ts";
import { priorityNames, priorityPrefix } from "./names.ts";
import { type QueueOptions, QueuePath } from "./path.ts";

export interface PriorityPutOptions extends CallOptions {
  /** A whole number of 32 bits; the lowest comes first. */
  readonly priority: number;
}

const putNames: ReadonlySet<string> = new Set<keyof PriorityPutOptions>(["priority", "signal"]);

/**
 * Lowest priority number first, and among equals first in, first out; on the same path as Java Curator's
 * DistributedPriorityQueue. An item that fails keeps its priority.
 */
export class PriorityQueue {
  readonly #queue: QueuePath;

  /** Sends no request yet. @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: QueueOptions = {}) {
    this.#queue = new QueuePath(zk, path, priorityNames, options);
  }

  /**
   * @returns the name of the item's node
   * @throws CONNECTION_LOSS if it is unknown whether it was put; DATA_TOO_LARGE, OPTION_INVALID, NO_AUTH, CLOSED, …
   */
  put(item: Data, options: PriorityPutOptions): Promise<string> {
    return this.putAll([item], options);
  }

  /** Several of one priority in one node, which are consumed by one consumer, one after the other. See `put`. */
  async putAll(items: readonly Data[], options: PriorityPutOptions): Promise<string> {
    this.#queue.checkPutOptions(options, putNames);
    return this.#queue.put(priorityPrefix(options.priority), items, options);
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
