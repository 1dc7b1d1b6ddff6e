/**
 * A local copy of nodes that is kept up to date; the node, children and tree caches use it. A persistent watch reports which paths have
 * changed. Events contain no data, so a changed path is read again; only a deletion is applied directly. A path is read by one request
 * at a time, and once more if it changed meanwhile, so an older answer never replaces a newer one. A node that this client may not read
 * counts as missing, except the cache's own path. After a gap in the events, or in a new session, everything is read again, and the
 * differences are reported.
 */

import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkNames } from "../../base/options.ts";
import { checkPath } from "../../base/paths.ts";
import type { NodeEvent } from "../../operations/operations.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import type { Stat } from "../../operations/stat.ts";
import { follow, isPassing } from "../base/follow.ts";
import { Listeners } from "../base/listeners.ts";
import { Readings } from "./readings.ts";

export interface CachedNode {
  readonly path: string;
  readonly data: Buffer;
  readonly stat: Stat;
}

/**
 * added, changed, removed: a node was created, its data changed, or it was deleted. stale: events may be missing (for example, the
 * connection is lost or silent), or the cache has ended, so the contents may be out of date. fresh: all contents have been read again.
 */
export type CacheEvent =
  | { readonly type: "added"; readonly node: CachedNode }
  | { readonly type: "changed"; readonly node: CachedNode; readonly before: CachedNode }
  | { readonly type: "removed"; readonly before: CachedNode }
  | { readonly type: "stale" }
  | { readonly type: "fresh" };

/** Listeners must not throw: an error that a listener throws becomes an uncaught exception. */
export interface CacheListener {
  event?(event: CacheEvent): void;
  /**
   * Called with an error that will be retried, with the error that ends the cache, or if this client may not read a node below the
   * cache's path. Meant for a log.
   */
  trouble?(error: unknown): void;
}

export interface CacheOptions {
  /** The most nodes in the cache; with more, it closes with CACHE_FULL. Default 100,000. */
  readonly maxNodes?: number;
  /** The most bytes of data in the cache; with more, it closes with CACHE_FULL. Default 256 MiB. */
  readonly maxBytes?: number;
}

const optionNames: ReadonlySet<string> = new Set<keyof CacheOptions>(["maxNodes", "maxBytes"]);

/** The largest number of concurrent read requests of one cache. */
const maxReads = 64;
/**
 * The number of nodes by which the node limit may be exceeded for a while. Paths that are being read, or wait to be read again, may
 * belong to nodes that were deleted meanwhile, so only a count above limit plus margin surely exceeds the limit.
 */
const inDoubt = 2 * maxReads;

/**
 * Returns the events for the difference between two readings of one path. A node that was deleted and created again in between counts as
 * another node.
 */
export function changesBetween(before: CachedNode | undefined, node: CachedNode | undefined): CacheEvent[] {
  if (!before) return node ? [{ type: "added", node }] : [];
  if (!node) return [{ type: "removed", before }];
  if (before.stat.czxid !== node.stat.czxid) {
    return [
      { type: "removed", before },
      { type: "added", node },
    ];
  }
  return before.stat.mzxid === node.stat.mzxid ? [] : [{ type: "changed", node, before }];
}

/** Returns how many levels `path` is below `root`: 0 for `root` itself, -1 if it is not below. */
export function depthBelow(root: string, path: string): number {
  if (path === root) return 0;
  const prefix = root === "/" ? "/" : `${root}/`;
  return path.startsWith(prefix) ? path.slice(prefix.length).split("/").length : -1;
}

export class Mirror {
  readonly path: string;
  /**
   * Resolves once everything has been read.
   * @throws CLOSED if the cache is closed first; the error that makes reading impossible, such as NO_AUTH or CACHE_FULL
   */
  readonly ready: Promise<void>;
  readonly #depth: number;
  readonly #maxNodes: number;
  readonly #maxBytes: number;
  readonly #nodes = new Map<string, CachedNode>();
  /** Paths below the cache's own path that the client may not read. Each is reported once. */
  readonly #hidden = new Set<string>();
  readonly #listeners = new Listeners<CacheListener>();
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #bytes = 0;
  #fresh = false;
  #wasReady = false;
  #failure: unknown;

  /** @param depth 0: only the node; 1: also its children; Infinity: all its descendants */
  constructor(zk: ZooKeeper, path: string, depth: number, options: CacheOptions = {}) {
    checkPath(path);
    checkNames(`the cache of ${path}`, path, options, optionNames);
    const { maxNodes = 100_000, maxBytes = 256 * 1024 * 1024 } = options;
    this.path = path;
    this.#depth = depth;
    this.#maxNodes = maxNodes;
    this.#maxBytes = maxBytes;
    let becomeReady: () => void = () => undefined;
    let giveUp: (reason: unknown) => void = () => undefined;
    this.ready = new Promise((resolve, reject) => {
      becomeReady = () => {
        this.#wasReady = true;
        resolve();
      };
      giveUp = reject;
    });
    this.ready.catch(() => undefined); // avoids an unhandled rejection; `failure` also has the error
    this.#running = this.#run(zk, becomeReady).finally(() => giveUp(this.#endedError()));
  }

  /** True if everything has been read and no event can be missing. */
  get fresh(): boolean {
    return this.#fresh;
  }

  /** The error that ended the cache; undefined while it works, and if `close` or the end of the client ended it. */
  get failure(): unknown {
    return this.#failure;
  }

  get nodes(): ReadonlyMap<string, CachedNode> {
    return this.#nodes;
  }

  /** @returns a function that removes the listener */
  listen(listener: CacheListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Stops the updates; the last contents can still be read. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#listeners.clear();
    await this.#running;
  }

  #endedError(): unknown {
    if (this.#failure !== undefined) return this.#failure;
    return new ZooKeeperError("CLOSED", `the cache of ${this.path} has been closed`, { path: this.path });
  }

  async #run(zk: ZooKeeper, ready: () => void): Promise<void> {
    try {
      await follow(
        zk,
        this.#closing.signal,
        async (session) => {
          await this.#serve(session, ready);
          return "again";
        },
        (error) => {
          // A retry is useless if the cache is full, or if the first reading failed for a lasting reason, such as a wrong path.
          if (isZooKeeperError(error, "CACHE_FULL") || (!this.#wasReady && !isPassing(error))) throw error;
          this.#listeners.tell((one) => one.trouble?.(error));
        },
      );
    } catch (error) {
      if (zk.signal.aborted) return;
      this.#failure = error;
      this.#listeners.tell((one) => one.trouble?.(error));
    } finally {
      this.#age();
      this.#closing.abort();
    }
  }

  /** Keeps the nodes up to date during one session. Returns when the cache is closed or the watch is removed; otherwise throws. */
  async #serve(session: Session, ready: () => void): Promise<void> {
    const work = new Readings(maxReads);
    const stop = () => work.end();
    this.#closing.signal.addEventListener("abort", stop);
    const stopListening = session.onState((state) => {
      this.#age();
      if (state === "connected") this.#readAll(work);
    });
    const watch = await session
      .watch(this.path, { recursive: this.#depth > 0, signal: this.#closing.signal })
      .catch((error: unknown) => {
        stopListening();
        this.#closing.signal.removeEventListener("abort", stop);
        throw error;
      });
    try {
      this.#readAll(work);
      const heard = (async () => {
        for await (const event of watch) this.#hear(event, work);
      })();
      // When the watch ends, the reading ends too, with the same error.
      heard.then(
        () => work.end(),
        (error: unknown) => work.end(error),
      );
      await work.run(
        (path, deep, round) => this.#read(session, path, deep, round, work),
        () => {
          for (const path of work.missed([...this.#nodes.keys(), ...this.#hidden])) this.#gone(path);
          if (this.#count > this.#maxNodes) throw this.#full();
          if (session.state !== "connected" || this.#fresh) return;
          this.#fresh = true;
          this.#tell({ type: "fresh" });
          ready();
        },
      );
    } finally {
      stopListening();
      this.#closing.signal.removeEventListener("abort", stop);
      this.#age();
      await watch.close();
    }
  }

  #hear(event: NodeEvent, work: Readings): void {
    if (event.type === "gap") {
      this.#age();
      this.#readAll(work);
      return;
    }
    const depth = depthBelow(this.path, event.path);
    if (event.type === "children" || depth < 0 || depth > this.#depth) return;
    if (event.type === "deleted" && work.drop(event.path)) this.#gone(event.path);
    else work.add(event.path, false);
    if (work.size > this.#maxNodes + inDoubt) work.end(this.#full());
  }

  #readAll(work: Readings): void {
    work.renew();
    work.add(this.path, true);
  }

  async #read(session: Session, path: string, deep: boolean, round: number, work: Readings): Promise<void> {
    let node: CachedNode | undefined;
    try {
      node = await readNode(session, path);
      this.#hidden.delete(path);
    } catch (error) {
      this.#hide(path, error);
    }
    work.meet(path, round);
    this.#keep(path, node);
    // If a newer round has begun, it reads this list of children itself. Children that are created later are reported by events.
    if (round !== work.round || !deep || !node || node.stat.childCount === 0) return;
    if (depthBelow(this.path, path) >= this.#depth) return;
    // Names are processed one by one, so that a list that is longer than the limit is never held in memory.
    const prefix = path === "/" ? "/" : `${path}/`;
    try {
      await session.eachChild(path, (name) => {
        if (work.size <= this.#maxNodes + inDoubt) work.add(prefix + name, true);
      });
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) this.#hide(path, error); // an event reports the deletion as well
    }
    if (work.size > this.#maxNodes + inDoubt) throw this.#full();
  }

  /** Records that a path below the cache's own path may not be read. @throws the error, unless it is NO_AUTH for a path below */
  #hide(path: string, error: unknown): void {
    if (path === this.path || !isZooKeeperError(error, "NO_AUTH")) throw error;
    if (this.#hidden.has(path)) return;
    this.#hidden.add(path);
    this.#listeners.tell((one) => one.trouble?.(error));
  }

  #gone(path: string): void {
    this.#hidden.delete(path);
    this.#keep(path, undefined);
  }

  get #count(): number {
    return this.#nodes.size + this.#hidden.size;
  }

  #keep(path: string, node: CachedNode | undefined): void {
    const before = this.#nodes.get(path);
    this.#bytes += (node?.data.length ?? 0) - (before?.data.length ?? 0);
    if (node) this.#nodes.set(path, node);
    else this.#nodes.delete(path);
    for (const event of changesBetween(before, node)) this.#tell(event);
    if (this.#count > this.#maxNodes + inDoubt || this.#bytes > this.#maxBytes) throw this.#full();
  }

  #age(): void {
    if (!this.#fresh) return;
    this.#fresh = false;
    this.#tell({ type: "stale" });
  }

  #tell(event: CacheEvent): void {
    this.#listeners.tell((one) => one.event?.(event));
  }

  #full(): ZooKeeperError {
    return new ZooKeeperError(
      "CACHE_FULL",
      `the cache of ${this.path} met more than ${this.#maxNodes} nodes or ${this.#maxBytes} bytes`,
      { path: this.path, hint: "raise maxNodes or maxBytes, or cache a smaller part" },
    );
  }
}

async function readNode(session: Session, path: string): Promise<CachedNode | undefined> {
  try {
    const { data, stat } = await session.get(path);
    return { path, data, stat };
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return undefined;
    throw error;
  }
}
