/**
 * One consumer of a queue. It lists the queue once per session and from then on keeps its names current by a recursive
 * watch, so that what it costs does not depend on how many items wait. Items whose lock another consumer holds are laid
 * by until that lock goes, by a watch as well: nobody who lost a race asks again and again.
 */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { ZooKeeperError } from "../errors.ts";
import type { NodeEvent, Watch } from "../operations.ts";
import type { Session, ZooKeeper } from "../session.ts";
import { follow, isPassing } from "./follow.ts";
import type { Claim, QueueLayout } from "./queue-claims.ts";
import { claim, complete, createQueuePaths, release, sendBack, setAside } from "./queue-claims.ts";
import { ItemIndex } from "./queue-index.ts";
import { decodeItems, encodeItems } from "./queue-items.ts";
import { pause } from "./waiting.ts";

export interface QueueItem {
  readonly data: Buffer;
  /** Of its node, without the path. */
  readonly name: string;
  /** From 1. With a lock path, attempts that ended with their process count too. */
  readonly attempt: number;
  /** With a lock path: larger for every later attempt of whomever (the lock's czxid). */
  readonly fence: bigint | undefined;
  /** Aborts when the item's lock is lost with its session, so that another may run it, or the consumer is stopped. */
  readonly signal: AbortSignal;
  /** Of a delay queue: epoch ms it was put for. 0 where Java sent it back without its time. */
  readonly dueMs?: number;
  /** Of a priority queue. */
  readonly priority?: number;
  /** Of a queue with ids. */
  readonly id?: string;
}

/** An item whose handler threw, or that is no item of Curator's layout. */
export interface ItemFailure {
  readonly name: string;
  readonly attempt: number;
  readonly error: unknown;
  /** Epoch ms before which it is not tried again; undefined: it was set aside into the poison path. */
  readonly retryAtMs: number | undefined;
}

export interface ConsumeOptions {
  /** Items that run at a time. Default 1, which keeps their order; of a delay queue 100. */
  readonly concurrency?: number;
  /** After so many an item that fails is set aside. Default 10. */
  readonly attempts?: number;
  /** ms to wait after so many failures, from 1 on. Default: from 1 s on twice as long each time, up to 5 min, jittered. */
  readonly backoffMs?: (failures: number) => number;
  /** Of a delay queue with a lock path: so early it locks what comes due, to start it from a timer. Default 250. */
  readonly claimAheadMs?: number;
  /** Stops at once: aborts the items that run. `close` lets them end. */
  readonly signal?: AbortSignal;
  /** Is told each failure of an item. Must not throw. */
  readonly onFailure?: (failure: ItemFailure) => void;
  /** Is told what keeps the consumer from working, while it goes on trying. Must not throw. */
  readonly onTrouble?: (error: unknown) => void;
}

/** What is thrown or rejected is a failure of the item; it goes back, and is tried again later. */
export type ItemHandler = (item: QueueItem) => unknown;

export interface Consumer {
  /** Items it knows of: those that wait, and those it works on. */
  readonly known: number;
  /** Resolves when it was closed; rejects with what makes the queue unusable (say NO_AUTH): it does not go on then. */
  readonly ended: Promise<void>;
  /** Takes no more items, gives back what has not started, and waits for the handlers that run. Never rejects. */
  close(): Promise<void>;
}

const maxWaitingEvents = 200_000;
/** Looked at the clock at least so often: it may be set while we sleep. */
const longestSleepMs = 1_000;
/** Until an item is looked at again that could not be claimed or settled for a reason of its own. */
const deferMs = 5_000;

export function defaultBackoffMs(failures: number): number {
  return Math.min(300_000, 1_000 * 2 ** Math.min(failures - 1, 20)) * (0.5 + Math.random() / 2);
}

export interface ConsumerSettings extends Required<Omit<ConsumeOptions, "signal" | "onFailure" | "onTrouble">> {
  readonly onFailure: ((failure: ItemFailure) => void) | undefined;
  readonly onTrouble: ((error: unknown) => void) | undefined;
  /** Whether an item's rank is the time it is due. */
  readonly timed: boolean;
}

export class QueueConsumer implements Consumer {
  readonly ended: Promise<void>;
  /** Resolves when the queue has been listed for the first time; rejects when that will not be, and `ended` does not. */
  readonly ready: Promise<void>;
  /** Settles `ready`, once. */
  #begun: { resolve: () => void; reject: (error: unknown) => void } | undefined;
  readonly #zk: ZooKeeper;
  readonly #layout: QueueLayout;
  readonly #handler: ItemHandler;
  readonly #settings: ConsumerSettings;
  /** Of a queue by time: everything. Otherwise what may be taken at once. */
  readonly #waiting: ItemIndex;
  /** Of a queue that is not by time: what waits for its next attempt. */
  readonly #later: ItemIndex;
  /** Names that are being claimed, wait here for their time, or run. */
  readonly #held = new Set<string>();
  /** Names whose lock another consumer holds. */
  readonly #locked = new Set<string>();
  readonly #deferred = new Map<string, NodeJS.Timeout>();
  /** Names that went while the queue is being listed: the list may be older than the event. */
  #wentMeanwhile: Set<string> | undefined;
  #listing: Promise<void> = Promise.resolve();
  /** What its locks hold. */
  readonly #token: string = randomUUID();
  readonly #stop = new AbortController();
  readonly #abort = new AbortController();
  /** Claimed, their time has come, and no handler is free. */
  readonly #startable: (() => void)[] = [];
  #session: Session | undefined;
  /** Aborts with the session or the consumer; one for all items, as there may be thousands. */
  #itemSignal: AbortSignal = this.#abort.signal;
  #running = 0;
  /** Claimed before their time. */
  #early = 0;
  #timer: NodeJS.Timeout | undefined;
  #woken = false;
  #idle: (() => void) | undefined;

  /** @param over is called when it has ended */
  constructor(zk: ZooKeeper, layout: QueueLayout, handler: ItemHandler, settings: ConsumerSettings, over: () => void) {
    this.#zk = zk;
    this.#layout = layout;
    this.#handler = handler;
    this.#settings = settings;
    this.#waiting = new ItemIndex(layout.names);
    this.#later = new ItemIndex(layout.names, ({ notBeforeMs }) => notBeforeMs);
    // As many listeners as items: no leak.
    setMaxListeners(0, this.#stop.signal, this.#abort.signal);
    this.ready = new Promise((resolve, reject) => {
      this.#begun = { resolve, reject };
    });
    this.ended = this.#run().finally(over);
  }

  get known(): number {
    return this.#waiting.size + this.#later.size + this.#held.size + this.#locked.size + this.#deferred.size;
  }

  /** Stops now: those that run are told by their signal. */
  abort(): void {
    this.#abort.abort();
    this.#stop.abort();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    // Why it ended is told by `ended`.
    await this.ended.catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { path } = this.#layout;
    let failure: unknown;
    try {
      await follow(
        this.#zk,
        this.#stop.signal,
        (session) => this.#serve(session),
        (error) => {
          if (!isPassing(error)) throw error;
          this.#settings.onTrouble?.(error);
        },
      );
    } catch (error) {
      failure = error;
    }
    this.#stop.abort();
    clearTimeout(this.#timer);
    for (const timer of this.#deferred.values()) clearTimeout(timer);
    this.#deferred.clear();
    for (const start of this.#startable.splice(0)) start();
    if (this.#held.size > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    if (this.#begun) {
      const hint = "consume again if that was not meant";
      this.#begun.reject(failure ?? new ZooKeeperError("ABORTED", `consume ${path}: given up`, { path, hint }));
      return;
    }
    // Closing the client ends its consumers, and that is no failure of theirs.
    if (failure !== undefined && !this.#zk.signal.aborted) throw failure;
  }

  /** One session's time. */
  async #serve(session: Session): Promise<"again" | "done"> {
    const signal = this.#stop.signal;
    const { path, lockPath } = this.#layout;
    await createQueuePaths(session, this.#layout, signal);
    const watches: Watch[] = [];
    const ending = new AbortController();
    setMaxListeners(0, ending.signal);
    const end = () => ending.abort();
    session.signal.addEventListener("abort", end, { once: true });
    this.#abort.signal.addEventListener("abort", end, { once: true });
    if (session.signal.aborted || this.#abort.signal.aborted) end();
    try {
      const options = { recursive: true, maxWaiting: maxWaitingEvents, signal };
      const watch = await session.watch(path, options);
      watches.push(watch);
      const followed = [this.#follow(watch, (event) => this.#itemEvent(session, event))];
      if (lockPath !== undefined) {
        const locks = await session.watch(lockPath, options);
        watches.push(locks);
        followed.push(this.#follow(locks, (event) => this.#lockEvent(event)));
      }
      const watching = Promise.all(followed);
      watching.catch(() => undefined); // while the list is fetched; waited for below
      this.#itemSignal = lockPath === undefined ? this.#abort.signal : ending.signal;
      await this.#list(session);
      this.#session = session;
      this.#begun?.resolve();
      this.#begun = undefined;
      this.#wake();
      await watching;
      return signal.aborted ? "done" : "again";
    } finally {
      this.#session = undefined;
      // While it closes in peace, the session goes on, handlers keep their locks, and are still told when these go.
      if (!session.live) {
        end();
        session.signal.removeEventListener("abort", end);
        this.#abort.signal.removeEventListener("abort", end);
      }
      for (const watch of watches) void watch.close();
    }
  }

  async #follow(watch: Watch, tell: (event: NodeEvent) => void): Promise<void> {
    for await (const event of watch) {
      if (this.#stop.signal.aborted) return;
      tell(event);
    }
  }

  /** One after the other: a listing in the middle of another would drop what the other has found. */
  #list(session: Session): Promise<void> {
    const before = this.#listing;
    const next = before.then(() => this.#listNow(session));
    this.#listing = next.catch(() => undefined); // told to who asked for it
    return next;
  }

  async #listNow(session: Session): Promise<void> {
    const went = new Set<string>();
    this.#wentMeanwhile = went;
    for (const index of [this.#waiting, this.#later]) index.beginListing();
    this.#unlockAll();
    try {
      const each = (name: string) => {
        if (!went.has(name)) this.#add(name);
      };
      await session.eachChild(this.#layout.path, each, { signal: this.#stop.signal });
      for (const index of [this.#waiting, this.#later]) index.endListing();
    } finally {
      if (this.#wentMeanwhile === went) this.#wentMeanwhile = undefined;
    }
  }

  #itemEvent(session: Session, { type, path }: NodeEvent): void {
    if (type === "gap") {
      this.#list(session).then(
        () => this.#wake(),
        (error) => {
          // With the session it is listed anew; otherwise the next gap or session does it, and this is worth telling.
          if (session.live && !this.#stop.signal.aborted) this.#settings.onTrouble?.(error);
        },
      );
      return;
    }
    const name = this.#nameIn(this.#layout.path, path);
    if (name === undefined) return;
    if (type === "created") {
      const [before, beforeLater] = [this.#waiting.firstRank, this.#later.firstRank];
      this.#add(name);
      if (this.#waiting.firstRank < before || this.#later.firstRank < beforeLater) this.#wake();
    } else if (type === "deleted") {
      this.#wentMeanwhile?.add(name);
      this.#locked.delete(name);
      clearTimeout(this.#deferred.get(name));
      this.#deferred.delete(name);
      this.#remove(name);
    }
  }

  #lockEvent({ type, path }: NodeEvent): void {
    if (type === "gap") this.#unlockAll();
    const name = this.#nameIn(this.#layout.lockPath ?? "", path);
    if (name === undefined) return;
    if (type === "deleted" && this.#locked.delete(name)) this.#offer(name);
    // Another one's: no use in trying.
    if (type === "created" && !this.#held.has(name) && this.#remove(name)) this.#locked.add(name);
  }

  #remove(name: string): boolean {
    const item = this.#layout.names.parse(name);
    return item !== undefined && (this.#waiting.delete(name, item) || this.#later.delete(name, item));
  }

  /** Looks again at what others had locked. */
  #unlockAll(): void {
    const names = [...this.#locked];
    this.#locked.clear();
    for (const name of names) this.#offer(name);
  }

  #nameIn(parent: string, path: string): string | undefined {
    const name = path.startsWith(`${parent}/`) ? path.slice(parent.length + 1) : "";
    return name === "" || name.includes("/") ? undefined : name;
  }

  #offer(name: string): void {
    if (this.#stop.signal.aborted) return;
    this.#add(name);
    this.#wake();
  }

  #add(name: string): void {
    if (this.#held.has(name) || this.#locked.has(name) || this.#deferred.has(name)) return;
    const item = this.#layout.names.parse(name);
    if (!item) return;
    if (!this.#settings.timed && item.notBeforeMs > 0 && item.notBeforeMs > Date.now()) this.#later.add(name, item);
    else this.#waiting.add(name, item);
  }

  /** Soon, once for many events. */
  #wake(): void {
    if (this.#woken) return;
    this.#woken = true;
    setImmediate(() => {
      this.#woken = false;
      this.#advance();
    });
  }

  /** Claims what is due, as far as there is room, and sets the timer for what comes next. */
  #advance(): void {
    clearTimeout(this.#timer);
    const session = this.#session;
    if (!session?.live || this.#stop.signal.aborted) return;
    const { concurrency, claimAheadMs, timed } = this.#settings;
    const now = Date.now();
    while (this.#later.firstRank <= now) this.#offerLater();
    while (this.#waiting.size > 0) {
      const early = timed && this.#waiting.firstRank > now;
      if (early && this.#waiting.firstRank > now + claimAheadMs) break;
      // What is claimed early has room of its own, so that it keeps nothing waiting that is due already.
      if (early ? this.#held.size >= concurrency : this.#held.size - this.#early >= concurrency) return;
      const name = this.#waiting.take() as string;
      this.#held.add(name);
      if (early) this.#early++;
      void this.#handle(session, name, early);
    }
    const next = timed ? this.#waiting.firstRank - claimAheadMs : this.#later.firstRank;
    if (next === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#advance(), Math.max(1, Math.min(longestSleepMs, next - now)));
  }

  #offerLater(): void {
    const name = this.#later.take();
    const item = name === undefined ? undefined : this.#layout.names.parse(name);
    if (name !== undefined && item) this.#waiting.add(name, item);
  }

  /** From the claim to the end. Never rejects. */
  async #handle(session: Session, name: string, early: boolean): Promise<void> {
    let again: "drop" | "offer" | "locked" | "defer" = "drop";
    let onTime = !early;
    const noLongerEarly = () => {
      if (!onTime) this.#early--;
      onTime = true;
    };
    try {
      const item = this.#layout.names.parse(name);
      const outcome = item ? await claim(session, this.#layout, name, item, this.#token) : "gone";
      if (outcome === "locked") again = "locked";
      else if (outcome === "moved") again = "offer";
      else if (outcome !== "gone") {
        await this.#due(outcome.item.notBeforeMs);
        noLongerEarly();
        again = await this.#inTurn(outcome);
      }
    } catch (error) {
      // With the session every claim ended; the next one's list says what is left.
      again = session.live ? "defer" : "offer";
      if (session.live && !this.#stop.signal.aborted) this.#settings.onTrouble?.(error);
    }
    noLongerEarly();
    this.#held.delete(name);
    if (this.#stop.signal.aborted) {
      if (this.#held.size === 0) this.#idle?.();
      return;
    }
    if (again === "offer") this.#add(name);
    else if (again === "locked") this.#layBy(session, name);
    else if (again === "defer") this.#defer(name);
    this.#wake();
  }

  /** Waits for an item's time, if it was claimed before. */
  #due(atMs: number): Promise<void> | undefined {
    if (!this.#settings.timed || Date.now() >= atMs) return undefined;
    return new Promise((resolve) => {
      const wait = () => {
        if (Date.now() >= atMs || this.#stop.signal.aborted) {
          this.#stop.signal.removeEventListener("abort", wait);
          clearTimeout(timer);
          resolve();
        } else timer = setTimeout(wait, Math.max(1, Math.min(longestSleepMs, atMs - Date.now())));
      };
      let timer: NodeJS.Timeout | undefined;
      this.#stop.signal.addEventListener("abort", wait, { once: true });
      wait();
    });
  }

  /** Runs it when a handler is free. */
  async #inTurn(claim: Claim): Promise<"drop" | "offer"> {
    if (this.#running >= this.#settings.concurrency) {
      await new Promise<void>((resolve) => {
        this.#startable.push(resolve);
      });
    }
    this.#running++;
    try {
      return await this.#work(claim);
    } catch (error) {
      // It could not be settled. A lock left behind in a session that goes on would keep everyone from it.
      if (claim.session.live) await release(this.#layout, claim);
      throw error;
    } finally {
      this.#running--;
      this.#startable.shift()?.();
    }
  }

  async #work(claim: Claim): Promise<"drop" | "offer"> {
    const locking = this.#layout.lockPath !== undefined;
    if (locking && !claim.session.live) return "offer";
    if (this.#stop.signal.aborted) {
      if (locking) await release(this.#layout, claim);
      else await this.#sendBack(claim, claim.data, claim.begun, claim.item.notBeforeMs);
      return "drop";
    }
    const { attempts } = this.#settings;
    let items: Buffer[];
    try {
      items = decodeItems(claim.data, `${this.#layout.path}/${claim.name}`);
    } catch (error) {
      await this.#fail(claim, claim.data, claim.begun + 1, error, false);
      return "drop";
    }
    if (claim.begun >= attempts) {
      const error = new Error(`${claim.begun} attempts began, and their processes ended before them`);
      await this.#fail(claim, claim.data, claim.begun, error, false);
      return "drop";
    }
    const { dueMs, priority, id } = claim.item;
    const about = { name: claim.name, attempt: claim.begun + 1, fence: claim.fence, signal: this.#itemSignal };
    for (let i = 0; i < items.length; i++) {
      try {
        await this.#handler({ data: items[i] as Buffer, ...about, dueMs, priority, id });
      } catch (error) {
        // Of several items in one node, those that are done do not come again.
        const rest = i === 0 ? claim.data : encodeItems(items.slice(i));
        await this.#fail(claim, rest, claim.begun + 1, error, claim.begun + 1 < attempts);
        return "drop";
      }
    }
    await complete(this.#layout, claim);
    return "drop";
  }

  async #fail(claim: Claim, data: Buffer, attempt: number, error: unknown, again: boolean): Promise<void> {
    const retryAtMs = again ? Date.now() + Math.ceil(Math.max(0, this.#settings.backoffMs(attempt))) : undefined;
    await this.#sendBack(claim, data, attempt, retryAtMs);
    this.#settings.onFailure?.({ name: claim.name, attempt, error, retryAtMs });
  }

  /** @param notBeforeMs undefined: aside */
  async #sendBack(claim: Claim, data: Buffer, failures: number, notBeforeMs: number | undefined): Promise<void> {
    for (;;) {
      // Without a lock the item is in this process alone, so it goes back in whatever session there is.
      const session = this.#layout.lockPath === undefined ? await this.#zk.established() : claim.session;
      try {
        const its = { ...claim, session };
        if (notBeforeMs === undefined) return await setAside(this.#layout, its, data, failures);
        return await sendBack(this.#layout, its, data, failures, notBeforeMs);
      } catch (error) {
        if (this.#layout.lockPath !== undefined || session.live || this.#zk.signal.aborted) throw error;
        await pause(0); // the client may not have found out yet what the clock says: give its timers a turn
      }
    }
  }

  /** Until the lock's end is reported; unless it went before anyone would have told us. */
  #layBy(session: Session, name: string): void {
    this.#locked.add(name);
    session.exists(`${this.#layout.lockPath}/${name}`).then(
      (lock) => {
        if (!lock && this.#locked.delete(name)) this.#offer(name);
      },
      () => {
        // The session ended, and the next one looks at all of them again.
      },
    );
  }

  #defer(name: string): void {
    const offer = () => {
      this.#deferred.delete(name);
      this.#offer(name);
    };
    this.#deferred.set(name, setTimeout(offer, deferMs));
  }
}
