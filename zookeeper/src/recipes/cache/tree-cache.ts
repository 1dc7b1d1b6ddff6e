/**
 * A local copy of a node and all its descendants with their data, kept up to date by a recursive watch (3.6 and later). The node need not
 * exist. A node's `stat` is read at each change of the node's own data, so its number of children may be out of date.
 */
import { parentOf } from "../../base/paths.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { type CachedNode, type CacheListener, type CacheOptions, Mirror } from "./mirror.ts";

export class TreeCache {
  readonly path: string;
  readonly #mirror: Mirror;

  /** Starts reading at once. @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options?: CacheOptions) {
    this.path = path;
    this.#mirror = new Mirror(zk, path, Number.POSITIVE_INFINITY, options);
  }

  /**
   * Resolves once the whole tree has been read.
   * @throws CLOSED if closed first; the error that makes reading impossible, such as NO_AUTH or CACHE_FULL
   */
  get ready(): Promise<void> {
    return this.#mirror.ready;
  }

  /**
   * True while the contents are up to date: everything has been read, and no event can be missing. False while the connection is lost or
   * silent, until everything has been read again, and once the cache is closed.
   */
  get fresh(): boolean {
    return this.#mirror.fresh;
  }

  /** All nodes by full path, in no particular order. */
  get nodes(): ReadonlyMap<string, CachedNode> {
    return this.#mirror.nodes;
  }

  get(path: string): CachedNode | undefined {
    return this.#mirror.nodes.get(path);
  }

  /** Returns the names of the path's children, sorted as text. Each call scans the whole cache. */
  children(path: string): string[] {
    const start = path === "/" ? 1 : path.length + 1;
    const below = [...this.#mirror.nodes.keys()].filter((one) => one !== "/" && parentOf(one) === path);
    return below.map((one) => one.slice(start)).sort();
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
