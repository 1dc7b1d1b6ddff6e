/**
 * A persistent watch that is set again in each session (3.6 and later). Each session after the first begins with a `gap` event: changes
 * in between are unknown, so the listener must read again.
 */

import { ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import { checkPath } from "../../base/paths.ts";
import type { NodeEvent } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { follow, isPassing } from "../base/follow.ts";
import { Listeners } from "../base/listeners.ts";

export interface WatcherOptions {
  /** If true, also watches all descendants of the path. */
  readonly recursive?: boolean;
}

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface WatcherListener {
  event?(event: NodeEvent): void;
  /** Called with an error that will be retried, or with the error that ends the watcher. Meant for a log. */
  trouble?(error: unknown): void;
}

const optionNames: ReadonlySet<string> = new Set<keyof WatcherOptions>(["recursive"]);

export class PersistentWatcher {
  readonly path: string;
  /**
   * Resolves once the watch is set for the first time.
   * @throws CLOSED if closed first; the error that makes watching impossible, such as UNIMPLEMENTED, after which the watcher is closed
   */
  readonly ready: Promise<void>;
  readonly #listeners = new Listeners<WatcherListener>();
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;

  /** Starts watching at once. @throws PATH_INVALID, OPTION_INVALID */
  constructor(zk: ZooKeeper, path: string, options: WatcherOptions = {}) {
    checkPath(path);
    checkNames(`the watcher of ${path}`, path, options, optionNames);
    const { recursive = false } = options;
    this.path = path;
    let become: () => void = () => undefined;
    let giveUp: (reason: unknown) => void = () => undefined;
    this.ready = new Promise((resolve, reject) => {
      become = resolve;
      giveUp = reject;
    });
    this.ready.catch(() => undefined); // avoids an unhandled rejection; `trouble` also reports the error
    this.#running = this.#run(zk, recursive, become).then(
      () => giveUp(new ZooKeeperError("CLOSED", `the watcher of ${path} has been closed`, { path })),
      giveUp,
    );
  }

  /** @returns a function that removes the listener */
  listen(listener: WatcherListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Stops watching. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#listeners.clear();
    await this.#running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(zk: ZooKeeper, recursive: boolean, ready: () => void): Promise<void> {
    const { signal } = this.#closing;
    let wasSet = false;
    const trouble = (error: unknown) => this.#listeners.tell((one) => one.trouble?.(error));
    try {
      await follow(
        zk,
        signal,
        async (session) => {
          const watch = await session.watch(this.path, { recursive, signal });
          if (wasSet) this.#tell({ type: "gap", path: this.path });
          wasSet = true;
          ready();
          for await (const event of watch) this.#tell(event);
          return "again"; // `removeWatches` has ended the watch, so it is set again
        },
        (error) => {
          if (!wasSet && !isPassing(error)) throw error;
          trouble(error);
        },
      );
    } catch (error) {
      if (zk.signal.aborted) return;
      trouble(error);
      throw error;
    }
  }

  #tell(event: NodeEvent): void {
    this.#listeners.tell((one) => one.event?.(event));
  }
}
