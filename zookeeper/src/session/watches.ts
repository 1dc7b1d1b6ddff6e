/**
 * A session's watches and their listeners, by full path (including the chroot). A server removes a connection's watches when the
 * connection is lost, so they are set again (`setAgain`) on the next connection before any call is sent.
 *
 * Servers up to 3.8 store one mode per connection and path: a one-time watch on a path with a persistent watch would silently turn the
 * persistent watch into a one-time watch. Therefore, while this session has a persistent watch on a path, reads do not request a watch
 * there, and the events of the persistent watch serve both. For the same reason a recursive watch serves the non-recursive watches on
 * its path: they report a created or deleted child as a change of the list of children.
 */
import { limits } from "../base/limits.ts";
import { parentOf, withoutChroot } from "../base/paths.ts";
import { tell } from "../base/tell.ts";
import type { NodeEvent, OnceEvent, Watch } from "../operations/operations.ts";
import type { Writer } from "../wire/bytes.ts";
import { eventType } from "../wire/codes.ts";

/** The kind of read that sets a one-time watch; it determines which changes fire the watch. */
export type OnceKind = "data" | "exists" | "children";
type Told = (event: OnceEvent) => void;

const typeNames = new Map<number, Exclude<NodeEvent["type"], "gap">>(
  (Object.keys(eventType) as (keyof typeof eventType)[]).map((name) => [eventType[name], name]),
);

export class Watches {
  readonly #chroot: string;
  readonly #once: Record<OnceKind, Map<string, Set<Told>>> = {
    data: new Map(),
    exists: new Map(),
    children: new Map(),
  };
  /** The persistent watches by path. `recursive`: true if the server watches all descendants, because one of the watches is recursive. */
  readonly #persistent = new Map<string, { recursive: boolean; watches: Set<PersistentWatch> }>();

  constructor(chroot: string) {
    this.#chroot = chroot;
  }

  /** True if a read of the path has to request a one-time watch from the server. */
  needsServer(path: string): boolean {
    return !this.#persistent.has(path);
  }

  /** @param asked true if the request told the server to set the watch; false if a persistent watch was to serve it */
  addOnce(kind: OnceKind, path: string, told: Told, asked: boolean): void {
    if (!asked && this.needsServer(path)) {
      // The persistent watch was closed before the read's answer, so a change may have been missed. A possible change is reported now.
      const event: OnceEvent = { type: kind === "children" ? kind : "changed", path: this.#plain(path) };
      setImmediate(tell, told, event);
      return;
    }
    const map = this.#once[kind];
    const all = map.get(path);
    if (all) all.add(told);
    else map.set(path, new Set([told]));
  }

  /** @returns true if the server must watch all descendants of the path */
  addPersistent(path: string, watch: PersistentWatch): boolean {
    const there = this.#persistent.get(path) ?? { recursive: false, watches: new Set() };
    this.#persistent.set(path, there);
    there.watches.add(watch);
    there.recursive ||= watch.recursive;
    return there.recursive;
  }

  /**
   * @returns the request to send to the server. forget: remove the watch, because the path has no listener any more. narrow: watch the path
   * without its descendants; after the answer, `narrowed` must be called
   */
  removePersistent(path: string, watch: PersistentWatch): "forget" | "narrow" | undefined {
    const there = this.#persistent.get(path);
    if (!there?.watches.delete(watch)) return undefined;
    if (there.watches.size > 0) return there.recursive && !isRecursive(there.watches) ? "narrow" : undefined;
    this.#persistent.delete(path);
    // Until now the recursive watch reported changes of the path's children, so one-time watches on the path may have missed one.
    if (there.recursive) this.doubt(path);
    return Object.values(this.#once).some((map) => map.has(path)) ? undefined : "forget";
  }

  /** Called after the server's answer: records that the server now watches the path recursively only if a recursive watch is left. */
  narrowed(path: string): void {
    const there = this.#persistent.get(path);
    if (there) there.recursive = isRecursive(there.watches);
  }

  /** Fires the one-time watches on the path, because they may have missed a change. */
  doubt(path: string): void {
    this.#fire(this.#once.data, path, "changed");
    this.#fire(this.#once.exists, path, "changed");
    this.#fire(this.#once.children, path, "children");
  }

  /**
   * Removes all watches on the path after the server has removed them. Listeners of one-time watches get the event `ended`; the
   * iterations of persistent watches end.
   */
  remove(path: string): void {
    for (const map of Object.values(this.#once)) this.#fire(map, path, "ended");
    const there = this.#persistent.get(path);
    this.#persistent.delete(path);
    for (const watch of there?.watches ?? []) watch.finish(undefined);
  }

  deliver(type: number, path: string): void {
    const name = typeNames.get(type);
    if (!name) return;
    const { data, exists, children } = this.#once;
    if (name === "children") this.#fire(children, path, name);
    else {
      this.#fire(data, path, name);
      this.#fire(exists, path, name);
      if (name === "deleted") this.#fire(children, path, name);
    }
    const event = { type: name, path: this.#plain(path) };
    for (const watch of this.#persistent.get(path)?.watches ?? [])
      if (name !== "children" || !watch.recursive) watch.push(event);
    if (name !== "children") this.#deliverRecursive(name, path);
  }

  #deliverRecursive(type: NodeEvent["type"], path: string): void {
    if (this.#persistent.size === 0) return;
    const parent = parentOf(path);
    for (let above = path; above !== "/"; ) {
      above = parentOf(above);
      const there = this.#persistent.get(above);
      if (!there?.recursive) continue;
      const event = { type, path: this.#plain(path) };
      for (const watch of there.watches) if (watch.recursive) watch.push(event);
      // For a recursive watch, servers send an event for each child, but no event for the list of children. So the one-time watches and
      // the non-recursive watches on the list are told here.
      if (above !== parent || type === "changed") continue;
      this.#fire(this.#once.children, parent, "children");
      const list: NodeEvent = { type: "children", path: this.#plain(parent) };
      for (const watch of there.watches) if (!watch.recursive) watch.push(list);
    }
  }

  /**
   * Called after the connection was lost for some time. When the watches are set again, the server fires the one-time watches that missed a
   * change. One-time watches that a persistent watch serves are fired here, because they may have missed a change; persistent watches get
   * the event `gap`.
   */
  gap(): void {
    for (const [path, { watches }] of [...this.#persistent]) {
      this.doubt(path);
      for (const watch of watches) watch.push({ type: "gap", path: this.#plain(path) });
    }
  }

  /**
   * Called if the server refuses to set the watches again, as servers before 3.6 do. One-time watches report a possible change, so that
   * their owners read again; the iterations of persistent watches throw `reason`.
   */
  refused(reason: unknown): void {
    const { data, exists, children } = this.#once;
    for (const map of [data, exists]) for (const path of [...map.keys()]) this.#fire(map, path, "changed");
    for (const path of [...children.keys()]) this.#fire(children, path, "children");
    this.#endPersistent(reason);
  }

  end(reason: unknown): void {
    for (const map of Object.values(this.#once)) {
      for (const path of [...map.keys()]) this.#fire(map, path, "ended");
    }
    this.#endPersistent(reason);
  }

  #endPersistent(reason: unknown): void {
    const all = [...this.#persistent.values()];
    this.#persistent.clear();
    for (const { watches } of all) for (const watch of watches) watch.finish(reason);
  }

  /**
   * Returns the bodies of the requests that set the watches again, except one-time watches that a persistent watch serves. Each body is
   * small enough for a server's limit.
   */
  setAgain(zxid: bigint): ((writer: Writer) => void)[] {
    const { data, exists, children } = this.#once;
    const persistent = [...this.#persistent];
    for (const [, one] of persistent) one.recursive = isRecursive(one.watches);
    const mode = (recursive: boolean) =>
      persistent.filter(([, one]) => one.recursive === recursive).map(([path]) => path);
    const once = (map: Map<string, unknown>) => [...map.keys()].filter((path) => !this.#persistent.has(path));
    const lists = [once(data), once(exists), once(children), mode(false), mode(true)];
    const bodies: ((writer: Writer) => void)[] = [];
    let batch: string[][] = [[], [], [], [], []];
    let bytes = 0;
    const close = () => {
      const full = batch;
      if (bytes > 0) {
        bodies.push((writer) => {
          writer.long(zxid);
          for (const list of full) writer.list(list, (path) => writer.string(path));
        });
      }
      batch = [[], [], [], [], []];
      bytes = 0;
    };
    lists.forEach((list, kind) => {
      for (const path of list) {
        batch[kind]?.push(path);
        bytes += 4 + Buffer.byteLength(path);
        if (bytes >= limits.setWatchesBytes) close();
      }
    });
    close();
    return bodies;
  }

  #fire(map: Map<string, Set<Told>>, path: string, type: OnceEvent["type"]): void {
    const all = map.get(path);
    if (!all) return;
    map.delete(path);
    for (const told of all) tell(told, { type, path: this.#plain(path) });
  }

  #plain(path: string): string {
    return withoutChroot(this.#chroot, path);
  }
}

function isRecursive(watches: Iterable<PersistentWatch>): boolean {
  return [...watches].some(({ recursive }) => recursive);
}

/**
 * A persistent watch with its queue of events. If the queue is full, all its events are replaced by one `gap`, after which the reader must
 * read everything again.
 */
export class PersistentWatch implements Watch {
  readonly path: string;
  readonly recursive: boolean;
  readonly #maxWaiting: number;
  readonly #close: () => Promise<void>;
  #events: NodeEvent[] = [];
  #finished = false;
  #reason: unknown;
  #readers: (() => void)[] = [];

  constructor(path: string, recursive: boolean, maxWaiting: number, close: () => Promise<void>) {
    this.path = path;
    this.recursive = recursive;
    this.#maxWaiting = maxWaiting;
    this.#close = close;
  }

  push(event: NodeEvent): void {
    if (this.#finished) return;
    if (this.#events.length >= this.#maxWaiting) this.#events = [{ type: "gap", path: this.path }];
    else this.#events.push(event);
    this.#wake();
  }

  /** Ends the watch. @param reason the error that the iteration throws; undefined: the iteration ends normally */
  finish(reason: unknown): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#reason = reason;
    this.#wake();
  }

  async close(): Promise<void> {
    if (this.#finished) return;
    this.finish(undefined);
    await this.#close();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<NodeEvent> {
    try {
      for (;;) {
        const events = this.#events;
        this.#events = [];
        yield* events;
        if (this.#events.length > 0) continue;
        if (this.#finished && this.#reason !== undefined) throw this.#reason;
        if (this.#finished) return;
        await new Promise<void>((resolve) => this.#readers.push(resolve));
      }
    } finally {
      await this.close();
    }
  }

  #wake(): void {
    for (const reader of this.#readers.splice(0)) reader();
  }
}
