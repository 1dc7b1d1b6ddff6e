/** A local copy of one service's instances, kept up to date by a children cache (3.6 and later). Curator: ServiceCache. */
import type { ZooKeeper } from "../../operations/session.ts";
import { Listeners } from "../base/listeners.ts";
import { ChildrenCache } from "../cache/children-cache.ts";
import type { CachedNode } from "../cache/mirror.ts";
import { decodeInstance, type ServiceInstance } from "./instance.ts";

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface ServiceCacheListener {
  /** Called when `instances` has changed: an instance was added, removed or changed. */
  changed?(): void;
  /** Called when a node's data is not an instance and is left out, or an operation failed. Meant for a log. */
  trouble?(error: unknown): void;
}

export class ServiceCache<Payload = unknown> {
  readonly #cache: ChildrenCache;
  readonly #closed: () => void;
  readonly #listeners = new Listeners<ServiceCacheListener>();
  readonly #byPath = new Map<string, ServiceInstance<Payload>>();
  #instances: readonly ServiceInstance<Payload>[] | undefined;

  /** @param path the service's path @param closed called when the cache is closed */
  constructor(zk: ZooKeeper, path: string, closed: () => void) {
    this.#closed = closed;
    this.#cache = new ChildrenCache(zk, path);
    this.#cache.listen({
      event: (event) => {
        if (event.type === "added" || event.type === "changed") this.#keep(event.node);
        else if (event.type === "removed") this.#drop(event.before.path);
      },
      trouble: (error) => this.#trouble(error),
    });
  }

  /**
   * Resolves once all instances have been read.
   * @throws CLOSED if closed first; the error that makes reading impossible, such as NO_AUTH, after which the cache is closed
   */
  get ready(): Promise<void> {
    return this.#cache.ready;
  }

  /**
   * True while the contents are up to date: all instances have been read, and no event can be missing. False while the connection is lost
   * or silent, until everything has been read again, and once the cache is closed.
   */
  get fresh(): boolean {
    return this.#cache.fresh;
  }

  /** The instances as last read, in the order of their ids. */
  get instances(): readonly ServiceInstance<Payload>[] {
    this.#instances ??= [...this.#byPath].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, instance]) => instance);
    return this.#instances;
  }

  /** @returns a function that removes the listener */
  listen(listener: ServiceCacheListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Stops the updates; the last contents can still be read. Never rejects. */
  close(): Promise<void> {
    this.#listeners.clear();
    this.#closed();
    return this.#cache.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #keep({ path, data }: CachedNode): void {
    try {
      this.#byPath.set(path, decodeInstance<Payload>(data, path));
      this.#changed();
    } catch (error) {
      this.#trouble(error);
      this.#drop(path);
    }
  }

  #drop(path: string): void {
    if (this.#byPath.delete(path)) this.#changed();
  }

  #changed(): void {
    this.#instances = undefined;
    this.#listeners.tell((one) => one.changed?.());
  }

  #trouble(error: unknown): void {
    this.#listeners.tell((one) => one.trouble?.(error));
  }
}
