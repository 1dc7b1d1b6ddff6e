/** What all kinds of queues have in common: the paths, and putting, removing, counting and consuming items. */

import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { callNames, checkNames } from "../../base/options.ts";
import { checkPath } from "../../base/paths.ts";
import type { Acl } from "../../operations/acl.ts";
import type { CallOptions, Data } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { createQueuePaths, marginBytes, type QueueLayout, removeItem } from "./claims.ts";
import { defaultBackoffMs, QueueConsumer } from "./consumer.ts";
import type { ConsumeOptions, ItemHandler } from "./consuming.ts";
import { encodeItems } from "./items.ts";
import { delayNames, type ItemName, type QueueNames } from "./names.ts";

export interface QueueOptions {
  /**
   * The parent of the items' locks, as Curator's `lockPath`. With it, items are processed at least once and are not lost if a process
   * dies. All consumers of a queue, including Java's, must use the same lock path. Default: none; items are then processed at most once,
   * and an item is lost if the process that took it dies.
   */
  readonly lockPath?: string;
  /** The path for items that failed too often. Default: the queue's path followed by `-poison`. */
  readonly poisonPath?: string;
  /**
   * The ACL of the nodes that this client creates: the queue's own, its items and locks, and `<path>-receipts`, where a consumer without
   * `lockPath` notes for a moment that it has put an item back. Default: every client has all permissions.
   */
  readonly acl?: readonly Acl[];
}

/** The largest size in bytes of the data of a put. With this size, the locking transaction still fits into a server's default limit. */
const maxItemBytes = limits.maxRequestBytes - marginBytes;

const optionNames: ReadonlySet<string> = new Set<keyof QueueOptions>(["lockPath", "poisonPath", "acl"]);

const consumeNames: ReadonlySet<string> = new Set<keyof ConsumeOptions>([
  "concurrency",
  "attempts",
  "backoffMs",
  "claimAheadMs",
  "signal",
  "onFailure",
  "onTrouble",
]);

export class QueuePath {
  readonly layout: QueueLayout;
  readonly #zk: ZooKeeper;
  readonly #consumers = new Set<QueueConsumer>();
  #closed = false;

  /** @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, names: QueueNames, options: QueueOptions) {
    checkNames(`the queue at ${path}`, path, options, optionNames);
    const { lockPath, poisonPath = `${path}-poison`, acl } = options;
    const paths = [path, poisonPath, ...(lockPath === undefined ? [] : [lockPath])];
    for (const one of paths) checkPath(one);
    if (new Set([...paths, "/"]).size <= paths.length) {
      throw new ZooKeeperError("OPTION_INVALID", `the queue's paths must differ, and none be /: ${paths.join(", ")}`, {
        path,
        hint: "give queue, lockPath and poisonPath each a path of its own",
      });
    }
    this.#zk = zk;
    this.layout = { path, lockPath, poisonPath, names, acl };
  }

  /** @throws OPTION_INVALID */
  checkPutOptions(options: CallOptions, names: ReadonlySet<string>): void {
    checkNames(`put into ${this.layout.path}`, this.layout.path, options, names);
  }

  /** Puts items into one node. @param prefix the node's name without the server's number @returns the node's name */
  async put(prefix: string, items: readonly Data[], { signal }: CallOptions): Promise<string> {
    const { path, acl } = this.layout;
    this.#requireOpen("put");
    if (items.length === 0) throw new ZooKeeperError("OPTION_INVALID", `put into ${path}: there is no item`, { path });
    const data = encodeItems(items);
    if (data.length > maxItemBytes) {
      throw new ZooKeeperError("DATA_TOO_LARGE", `put into ${path}: ${data.length} bytes exceed ${maxItemBytes}`, {
        path,
        hint: "store the item elsewhere and put a reference to it; or put several items one by one",
      });
    }
    for (;;) {
      const session = await this.#zk.established(signal);
      try {
        const created = await session.create(`${path}/${prefix}`, data, { sequential: true, acl, signal });
        return created.path.slice(path.length + 1);
      } catch (error) {
        if (isZooKeeperError(error, "CONNECTION_LOSS")) {
          const message = `put into ${path}: the connection was lost before the answer, so the item may be there or not`;
          throw new ZooKeeperError("CONNECTION_LOSS", message, {
            path,
            hint: `put it again if twice does no harm; should it always end so, its ${data.length} bytes may exceed the server's jute.maxbuffer`,
            cause: error,
          });
        }
        if (!isZooKeeperError(error, "NO_NODE")) throw error;
        await createQueuePaths(session, this.layout, signal);
      }
    }
  }

  /** Deletes the nodes whose names match and that no consumer has locked. @returns how many were deleted */
  async remove(matches: (item: ItemName) => boolean, options: CallOptions): Promise<number> {
    const { path, names } = this.layout;
    checkNames(`remove from ${path}`, path, options, callNames);
    this.#requireOpen("remove from");
    const session = await this.#zk.established(options.signal);
    const found: string[] = [];
    const each = (name: string) => {
      const item = names.parse(name);
      if (item && matches(item)) found.push(name);
    };
    await session.eachChild(path, each, options).catch((error: unknown) => {
      if (!isZooKeeperError(error, "NO_NODE")) throw error; // otherwise no item was ever put into the queue
    });
    let removed = 0;
    for (const name of found) if (await removeItem(session, this.layout, name, options)) removed++;
    return removed;
  }

  /** Reads the number of the queue's nodes; 0 if the queue does not exist. */
  async size(options: CallOptions): Promise<number> {
    return (await this.#zk.exists(this.layout.path, options))?.childCount ?? 0;
  }

  async consume(handler: ItemHandler, options: ConsumeOptions): Promise<QueueConsumer> {
    this.#requireOpen("consume");
    checkNames(`consume ${this.layout.path}`, this.layout.path, options, consumeNames);
    const timed = this.layout.names === delayNames;
    const settings = {
      concurrency: options.concurrency ?? (timed ? 100 : 1),
      attempts: options.attempts ?? 10,
      backoffMs: options.backoffMs ?? defaultBackoffMs,
      // Without a lock, a claim deletes the node. So an item that is not due yet is not claimed: it would exist only in this process.
      claimAheadMs: timed && this.layout.lockPath !== undefined ? (options.claimAheadMs ?? 250) : 0,
      onFailure: options.onFailure,
      onTrouble: options.onTrouble,
      timed,
    };
    this.#require("concurrency", settings.concurrency, Number.isInteger(settings.concurrency), 1);
    this.#require("attempts", settings.attempts, Number.isInteger(settings.attempts), 1);
    this.#require("claimAheadMs", settings.claimAheadMs, Number.isFinite(settings.claimAheadMs), 0);
    const consumer: QueueConsumer = new QueueConsumer(this.#zk, this.layout, handler, settings, () => {
      this.#consumers.delete(consumer);
      options.signal?.removeEventListener("abort", abort);
    });
    this.#consumers.add(consumer);
    const abort = () => consumer.abort();
    options.signal?.addEventListener("abort", abort, { once: true });
    if (options.signal?.aborted) abort();
    await consumer.ready;
    return consumer;
  }

  /** Closes this queue's consumers; later calls of `put`, `remove` and `consume` reject. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()));
  }

  #require(option: string, value: number, valid: boolean, least: number): void {
    if (valid && value >= least) return;
    const hint = `give a number from ${least} on`;
    throw new ZooKeeperError("OPTION_INVALID", `consume ${this.layout.path}: ${option} is ${value}`, { hint });
  }

  #requireOpen(what: string): void {
    const { path } = this.layout;
    if (!this.#closed) return;
    throw new ZooKeeperError("CLOSED", `${what} ${path}: the queue has been closed`, { path, hint: "make a new one" });
  }
}
