import type { CallOptions, Data } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import type { ConsumeOptions, Consumer, ItemHandler } from "./consuming.ts";
import { delayNames, delayPrefix } from "./names.ts";
import { type QueueOptions, QueuePath } from "./path.ts";

export interface DelayPutOptions extends CallOptions {
  /** Epoch ms at which the item becomes due, by the consumers' clocks. An item with a time in the past is due at once. */
  readonly at: number;
}

const putNames: ReadonlySet<string> = new Set<keyof DelayPutOptions>(["at", "signal"]);

/**
 * A queue whose items become due at a given time; compatible with Java Curator's DistributedDelayQueue on the same path. The number of
 * waiting items does not affect its punctuality, because a consumer lists the queue once and then follows a watch. A failed item is put
 * back with its original time and a back-off. With a `lockPath`, items are locked shortly before their time (`claimAheadMs`).
 *
 * Java consumers list all items each time. The listing fails, without an error, at about 32,000 items (a reply of 1 MB, the default
 * jute.maxbuffer of Java clients). If Java consumers share a longer queue, their jute.maxbuffer must be raised.
 */
export class DelayQueue {
  readonly #queue: QueuePath;

  /** Sends no request yet. @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: QueueOptions = {}) {
    this.#queue = new QueuePath(zk, path, delayNames, options);
  }

  /**
   * Puts an item into the queue. @returns the name of the item's node
   * @throws CONNECTION_LOSS if it is unknown whether the item was put; DATA_TOO_LARGE, OPTION_INVALID, NO_AUTH, CLOSED, …
   */
  put(item: Data, options: DelayPutOptions): Promise<string> {
    return this.putAll([item], options);
  }

  /** Puts several items with the same time into one node. One consumer processes them, one after another. See `put`. */
  async putAll(items: readonly Data[], options: DelayPutOptions): Promise<string> {
    this.#queue.checkPutOptions(options, putNames);
    return this.#queue.put(delayPrefix(options.at), items, options);
  }

  /** Reads the number of nodes in the queue, including those of items that are being processed with a lock. */
  size(options: CallOptions = {}): Promise<number> {
    return this.#queue.size(options);
  }

  /**
   * Starts a consumer; resolves once it has listed the queue.
   * @throws NO_AUTH, or another error that makes the queue unusable; ABORTED, CLOSED, OPTION_INVALID
   */
  consume(handler: ItemHandler, options: ConsumeOptions = {}): Promise<Consumer> {
    return this.#queue.consume(handler, options);
  }

  /** Closes this queue's consumers (see Consumer.close); later calls of `put` and `consume` reject. Never rejects. */
  close(): Promise<void> {
    return this.#queue.close();
  }
}
