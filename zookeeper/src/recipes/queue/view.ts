/**
 * A consumer's list of its queue, kept up to date without polling: the queue is listed once per session and after each gap in the events,
 * and recursive watches on the queue and its locks report changes. Each name is in exactly one state: waiting, waiting for a later
 * attempt, held (this consumer processes it), locked (by another consumer, until its lock is deleted), or deferred (after an error).
 */
import type { NodeEvent, Watch } from "../../operations/operations.ts";
import type { Session } from "../../operations/session.ts";
import { surely } from "../base/protect.ts";
import type { QueueLayout } from "./claims.ts";
import { ItemIndex } from "./item-index.ts";

const maxWaitingEvents = 200_000;
/** How long an item is deferred, in ms, if it could not be claimed, deleted or put back for a reason that concerns only this item. */
export const deferMs = 5_000;

export class QueueView {
  readonly #layout: QueueLayout;
  readonly #timed: boolean;
  readonly #changed: () => void;
  readonly #trouble: (error: unknown) => void;
  /** In a delay queue: all waiting items. In other queues: the items that may be taken at once. */
  readonly #waiting: ItemIndex;
  /** In other queues than delay queues: the items that wait for the time of their next attempt. */
  readonly #later: ItemIndex;
  readonly #held = new Set<string>();
  readonly #locked = new Set<string>();
  readonly #deferred = new Map<string, NodeJS.Timeout>();
  /** Names that were deleted while the queue was being listed. They are ignored in the list, which may be older than their deletion. */
  #wentMeanwhile: Set<string> | undefined;
  #listing: Promise<void> = Promise.resolve();

  /**
   * @param timed true in a delay queue: an item's rank is its due time
   * @param changed called when an item may have become available, or available earlier than before
   */
  constructor(layout: QueueLayout, timed: boolean, changed: () => void, trouble: (error: unknown) => void) {
    this.#layout = layout;
    this.#timed = timed;
    this.#changed = changed;
    this.#trouble = trouble;
    this.#waiting = new ItemIndex(layout.names);
    this.#later = new ItemIndex(layout.names, ({ notBeforeMs }) => notBeforeMs);
  }

  /** The number of known names, in all states. */
  get known(): number {
    return this.#waiting.size + this.#later.size + this.held + this.#locked.size + this.#deferred.size;
  }

  get held(): number {
    return this.#held.size;
  }

  /**
   * Returns when the next item may be taken, in epoch ms; Infinity if there is no item. In a delay queue, this is the item's due time,
   * which may be past. In other queues, it is 0 if an item may be taken now, otherwise the earliest time of a later attempt. Items whose
   * time for the next attempt has come are moved to the waiting ones first.
   */
  firstMs(nowMs: number): number {
    while (this.#later.firstRank <= nowMs) {
      const name = this.#later.take() as string;
      const item = this.#layout.names.parse(name);
      if (item) this.#waiting.add(name, item);
    }
    if (this.#timed) return this.#waiting.firstRank;
    return this.#waiting.size > 0 ? 0 : this.#later.firstRank;
  }

  /** Takes the first waiting name, which then counts as held; undefined if there is none. `firstMs` must be called before. */
  take(): string | undefined {
    const name = this.#waiting.take();
    if (name !== undefined) this.#held.add(name);
    return name;
  }

  /** Removes a held name whose node is deleted or will soon be. */
  drop(name: string): void {
    this.#held.delete(name);
  }

  /** Puts a held name back into the waiting ones. */
  giveBack(name: string): void {
    this.#held.delete(name);
    this.#add(name);
    this.#changed();
  }

  /**
   * Marks a held name as locked by another consumer until that lock is deleted. The lock is read once, in case it was deleted before the
   * watch was set.
   */
  layBy(session: Session, name: string): void {
    this.#held.delete(name);
    this.#locked.add(name);
    surely(session, () => session.exists(`${this.#layout.lockPath}/${name}`)).then(
      (lock) => {
        if (!lock) this.#unlock(name);
      },
      () => {
        // The request fails only once the session has ended. In the next session all names are listed again.
      },
    );
  }

  /** Defers a held name: it counts as waiting again after `deferMs`. */
  defer(name: string): void {
    this.#held.delete(name);
    const again = () => {
      this.#deferred.delete(name);
      this.#add(name);
      this.#changed();
    };
    this.#deferred.set(name, setTimeout(again, deferMs));
  }

  close(): void {
    for (const timer of this.#deferred.values()) clearTimeout(timer);
    this.#deferred.clear();
  }

  /**
   * Keeps the list up to date during one session. Resolves when the signal aborts; throws when the session ends or a request fails.
   * @param listed called once the queue has been listed
   */
  async keep(session: Session, signal: AbortSignal, listed: () => void): Promise<void> {
    const { path, lockPath } = this.#layout;
    const watches: Watch[] = [];
    const followed: Promise<void>[] = [];
    const follow = async (at: string, tell: (event: NodeEvent) => void) => {
      const watch = await session.watch(at, { recursive: true, maxWaiting: maxWaitingEvents, signal });
      watches.push(watch);
      const end = this.#follow(watch, signal, tell);
      end.catch(() => undefined); // avoids an unhandled rejection during the listing; awaited below
      followed.push(end);
    };
    try {
      // The watches are set before the listing, so that a change in between is reported twice instead of never.
      await follow(path, (event) => this.#itemEvent(session, signal, event));
      if (lockPath !== undefined) await follow(lockPath, (event) => this.#lockEvent(lockPath, event));
      await this.#list(session, signal);
      listed();
      await Promise.all(followed);
    } finally {
      for (const watch of watches) void watch.close();
    }
  }

  async #follow(watch: Watch, signal: AbortSignal, tell: (event: NodeEvent) => void): Promise<void> {
    for await (const event of watch) {
      if (signal.aborted) return;
      tell(event);
    }
  }

  /** Runs listings one after another, because concurrent listings would remove each other's names. */
  #list(session: Session, signal: AbortSignal): Promise<void> {
    const next = this.#listing.then(() => this.#listNow(session, signal));
    this.#listing = next.catch(() => undefined); // the caller of this listing gets the error
    return next;
  }

  async #listNow(session: Session, signal: AbortSignal): Promise<void> {
    const went = new Set<string>();
    this.#wentMeanwhile = went;
    this.#unlockAll();
    for (const index of [this.#waiting, this.#later]) index.beginListing();
    try {
      const each = (name: string) => {
        if (!went.has(name)) this.#add(name);
      };
      await session.eachChild(this.#layout.path, each, { signal });
      for (const index of [this.#waiting, this.#later]) index.endListing();
    } finally {
      this.#wentMeanwhile = undefined;
    }
  }

  #itemEvent(session: Session, signal: AbortSignal, { type, path }: NodeEvent): void {
    if (type === "gap") {
      this.#list(session, signal).then(this.#changed, (error) => {
        // A new session lists the queue again. In a live session there is no listing before the next gap, so the error is reported.
        if (session.live && !signal.aborted) this.#trouble(error);
      });
      return;
    }
    const name = nameIn(this.#layout.path, path);
    if (name === undefined) return;
    if (type === "created") {
      const [before, beforeLater] = [this.#waiting.firstRank, this.#later.firstRank];
      this.#add(name);
      if (this.#waiting.firstRank < before || this.#later.firstRank < beforeLater) this.#changed();
    } else if (type === "deleted") {
      this.#wentMeanwhile?.add(name);
      this.#locked.delete(name);
      clearTimeout(this.#deferred.get(name));
      this.#deferred.delete(name);
      this.#remove(name);
    }
  }

  #lockEvent(lockPath: string, { type, path }: NodeEvent): void {
    if (type === "gap") this.#unlockAll();
    const name = nameIn(lockPath, path);
    if (name === undefined) return;
    if (type === "deleted") this.#unlock(name);
    // Another consumer locked the item, so a claim would fail.
    if (type === "created" && !this.#held.has(name) && this.#remove(name)) this.#locked.add(name);
  }

  #add(name: string): void {
    if (this.#held.has(name) || this.#locked.has(name) || this.#deferred.has(name)) return;
    const item = this.#layout.names.parse(name);
    if (!item) return;
    if (!this.#timed && item.notBeforeMs > 0 && item.notBeforeMs > Date.now()) this.#later.add(name, item);
    else this.#waiting.add(name, item);
  }

  #remove(name: string): boolean {
    const item = this.#layout.names.parse(name);
    return item !== undefined && (this.#waiting.delete(name, item) || this.#later.delete(name, item));
  }

  #unlock(name: string): void {
    if (!this.#locked.delete(name)) return;
    this.#add(name);
    this.#changed();
  }

  #unlockAll(): void {
    for (const name of [...this.#locked]) this.#unlock(name);
  }
}

function nameIn(parent: string, path: string): string | undefined {
  const name = path.startsWith(`${parent}/`) ? path.slice(parent.length + 1) : "";
  return name === "" || name.includes("/") ? undefined : name;
}
