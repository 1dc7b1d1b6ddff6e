/**
 * A local copy of the children of one node with their data, kept up to date by a recursive watch (3.6 and later). The parent need not
 * exist. Events of deeper nodes are ignored, so a child's `stat` has the current version of the child's data, but its number of
 * children may be out of date.
 */
import type { ZooKeeper } from "../../operations/session.ts";
import { type CachedNode, type CacheEvent, type CacheListener, type CacheOptions, Mirror } from "./mirror.ts";

export class ChildrenCache {
  readonly path: string;
  readonly #mirror: Mirror;
  readonly #prefix: string;

  /** Starts reading at once. @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options?: CacheOptions) {
    this.path = path;
    this.#prefix = path === "/" ? "/" : `${path}/`;
    this.#mirror = new Mirror(zk, path, 1, options);
  }

  /**
   * Resolves once all children have been read.
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

  /** The children's names, sorted as text. */
  get names(): string[] {
    const paths = [...this.#mirror.nodes.keys()].filter((path) => path !== this.path);
    return paths.map((path) => path.slice(this.#prefix.length)).sort();
  }

  get(name: string): CachedNode | undefined {
    return name === "" ? undefined : this.#mirror.nodes.get(this.#prefix + name);
  }

  /** Calls the listener for events of the children, not of the parent. @returns a function that removes the listener */
  listen(listener: CacheListener): () => void {
    return this.#mirror.listen({
      ...listener,
      event: (event) => {
        if (pathOf(event) !== this.path) listener.event?.(event);
      },
      trouble: (error) => listener.trouble?.(error),
    });
  }

  /** Stops the updates; the last contents can still be read. Never rejects. */
  close(): Promise<void> {
    return this.#mirror.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function pathOf(event: CacheEvent): string | undefined {
  if (event.type === "stale" || event.type === "fresh") return undefined;
  return event.type === "removed" ? event.before.path : event.node.path;
}
