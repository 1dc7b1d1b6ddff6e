/** A node cache: a local copy of one node, kept up to date by a persistent watch (3.6 and later). The node need not exist. */
import type { ZooKeeper } from "../../operations/session.ts";
import { type CachedNode, type CacheListener, type CacheOptions, Mirror } from "./mirror.ts";

export class NodeCache {
  readonly path: string;
  readonly #mirror: Mirror;

  /** Starts reading at once. @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options?: CacheOptions) {
    this.path = path;
    this.#mirror = new Mirror(zk, path, 0, options);
  }

  /**
   * Resolves once the node has been read or is known to be missing.
   * @throws CLOSED if closed first; the error that makes reading impossible, such as NO_AUTH, after which the cache is closed
   */
  get ready(): Promise<void> {
    return this.#mirror.ready;
  }

  /**
   * True while the contents are up to date: the node has been read, and no event can be missing. False while the connection is lost or
   * silent, until the node has been read again, and once the cache is closed.
   */
  get fresh(): boolean {
    return this.#mirror.fresh;
  }

  /** The node as last read; undefined when it does not exist. */
  get node(): CachedNode | undefined {
    return this.#mirror.nodes.get(this.path);
  }

  /** @returns a function that removes the listener */
  listen(listener: CacheListener): () => void {
    return this.#mirror.listen(listener);
  }

  /** Stops the updates; the last contents can still be read. Never rejects. */
  close(): Promise<void> {
    return this.#mirror.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
