/** A shared count: one 32-bit number that many clients watch and set, stored like Java Curator's SharedCount: 4 bytes, big-endian. */
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkPath, parentOf } from "../../base/paths.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import type { Stat } from "../../operations/stat.ts";
import { decodeCount, encodeCount } from "../base/count.ts";
import { Listeners } from "../base/listeners.ts";
import { createContainers } from "../base/protect.ts";
import { NodeCache } from "../cache/node-cache.ts";

export interface VersionedCount {
  readonly count: number;
  /** The node's version, which each write increments. */
  readonly version: number;
}

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface CountListener {
  /** Called when this or another client has set the count, perhaps to the same number. Quick changes may be reported as one. */
  changed?(count: VersionedCount): void;
  /** Called when events may be missing, for example because the connection is lost or silent, so the count may be out of date. */
  stale?(): void;
  /** Called with an error that will be retried, or if another client has written data that is not a count. Meant for a log. */
  trouble?(error: unknown): void;
}

export class SharedCount {
  readonly path: string;
  readonly #zk: ZooKeeper;
  readonly #seed: Buffer;
  readonly #listeners = new Listeners<CountListener>();
  #cache: NodeCache | undefined;
  #started: Promise<void> | undefined;
  #closed = false;
  #last: (VersionedCount & { readonly mzxid: bigint; readonly czxid: bigint }) | undefined;

  /**
   * @param seed the initial count if the node does not exist
   * @throws PATH_INVALID, OPTION_INVALID
   */
  constructor(zk: ZooKeeper, path: string, seed = 0) {
    checkPath(path);
    this.path = path;
    this.#zk = zk;
    this.#seed = encodeCount(seed, path);
  }

  /**
   * Creates the count if it is missing, reads it, and keeps it up to date.
   * @throws DATA_INVALID, CLOSED; a permanent error, such as NO_AUTH, or NO_NODE if the client's chroot does not exist. After an error
   * the count is closed.
   */
  start(): Promise<void> {
    if (this.#closed) return Promise.reject(new ZooKeeperError("CLOSED", `the count ${this.path} has been closed`));
    this.#started ??= this.#start().catch(async (error: unknown) => {
      await this.close();
      throw error;
    });
    return this.#started;
  }

  /**
   * The count and its version, as this client last read or set them.
   * @throws NOT_HELD before `start` has read the count
   */
  get versioned(): VersionedCount {
    const last = this.#last;
    if (last) return { count: last.count, version: last.version };
    const options = { path: this.path, hint: "wait for start()" };
    throw new ZooKeeperError("NOT_HELD", `the count ${this.path} has not been read yet`, options);
  }

  /** The count, as this client last read or set it. @throws NOT_HELD before `start` has read the count */
  get count(): number {
    return this.versioned.count;
  }

  /** True while the count is up to date, because no event can be missing. False while the connection is lost or silent. */
  get fresh(): boolean {
    return this.#cache?.fresh ?? false;
  }

  /** @returns a function that removes the listener */
  listen(listener: CountListener): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Sets the count unconditionally; creates the node again if it was deleted.
   * @throws OPTION_INVALID; NO_NODE if the client's chroot does not exist; CONNECTION_LOSS if it is unknown whether the count was set
   */
  async set(count: number, options: CallOptions = {}): Promise<void> {
    const data = encodeCount(count, this.path);
    for (;;) {
      try {
        return this.#take(count, await this.#zk.set(this.path, data, options));
      } catch (error) {
        if (!isZooKeeperError(error, "NO_NODE")) throw error;
      }
      const stat = await this.#create(data, options);
      if (stat) return this.#take(count, stat);
    }
  }

  /**
   * Sets the count unless a client has set it since `before` was read.
   * @param before a value of `versioned`
   * @returns false if it has been set since; `versioned` then has the new count
   * @throws OPTION_INVALID; NO_NODE if the node was deleted; DATA_INVALID if another client has written data that is not a count;
   * CONNECTION_LOSS if it is unknown whether the count was set
   */
  async trySet(before: VersionedCount, count: number, options: CallOptions = {}): Promise<boolean> {
    const data = encodeCount(count, this.path);
    try {
      this.#take(count, await this.#zk.set(this.path, data, { ...options, version: before.version }));
      return true;
    } catch (error) {
      if (!isZooKeeperError(error, "BAD_VERSION")) throw error;
      await this.#read(options);
      return false;
    }
  }

  /** Stops the updates; the last count can still be read. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    await this.#cache?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #start(): Promise<void> {
    await this.#create(this.#seed, {});
    if (this.#closed) throw new ZooKeeperError("CLOSED", `the count ${this.path} has been closed`);
    const cache = new NodeCache(this.#zk, this.path);
    this.#cache = cache;
    cache.listen({
      event: (event) => {
        if (event.type === "stale") this.#listeners.tell((one) => one.stale?.());
        if (event.type !== "added" && event.type !== "changed") return;
        try {
          this.#take(decodeCount(event.node.data, this.path), event.node.stat);
        } catch (error) {
          this.#listeners.tell((one) => one.trouble?.(error));
        }
      },
      trouble: (error) => this.#listeners.tell((one) => one.trouble?.(error)),
    });
    await cache.ready;
    // The cache only reports data that is not a count. This direct read throws the error, so that `start` rejects.
    if (!this.#last) await this.#read({});
  }

  /** Creates the node. @returns its stat; undefined if the node exists already */
  async #create(data: Buffer, options: CallOptions): Promise<Stat | undefined> {
    for (;;) {
      try {
        const session = await this.#zk.established(options.signal);
        const parent = parentOf(this.path);
        if (parent !== "/") await createContainers(session, parent, options.signal);
        return (await session.create(this.path, data, options)).stat;
      } catch (error) {
        if (isZooKeeperError(error, "NODE_EXISTS")) return undefined;
        // If the parent of a node directly below the root is missing, the root itself is missing: the client's chroot does not exist.
        if (isZooKeeperError(error, "NO_NODE") && parentOf(error.path) === "/") throw error;
        // The parent was deleted meanwhile, or it is unknown whether the node was created. The next try finds or creates the node.
        if (!isZooKeeperError(error, "NO_NODE", "CONNECTION_LOSS", "SESSION_EXPIRED")) throw error;
      }
    }
  }

  async #read(options: CallOptions): Promise<void> {
    const { data, stat } = await this.#zk.get(this.path, options);
    this.#take(decodeCount(data, this.path), stat);
  }

  /**
   * Stores a newer count. An older one is ignored, because answers and events may arrive out of order, unless the server's data was wiped
   * and its transaction numbers began again.
   */
  #take(count: number, { version, mzxid, czxid }: Stat): void {
    const last = this.#last;
    const wiped = last?.czxid !== czxid && this.#zk.session.rewoundFrom !== undefined;
    if (last && mzxid <= last.mzxid && !wiped) return;
    this.#last = { count, version, mzxid, czxid };
    this.#listeners.tell((one) => one.changed?.({ count, version }));
  }
}
