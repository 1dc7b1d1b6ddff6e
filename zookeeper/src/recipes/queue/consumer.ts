/**
 * One consumer of a queue. It claims items that are due, or will be within `claimAheadMs`, and runs at most `concurrency` handlers at a
 * time. Then it deletes each item, puts it back, or moves it to the poison path. It lists the whole queue only once per session and after a
 * gap in the events, and does not poll for items that another consumer has locked: see view.ts.
 */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { ZooKeeperError } from "../../base/errors.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { follow, isPassing } from "../base/follow.ts";
import { pause } from "../base/waiting.ts";
import type { Claim, QueueLayout } from "./claims.ts";
import { claim, complete, createQueuePaths, release, sendBack, setAside } from "./claims.ts";
import type { ConsumeOptions, Consumer, ItemFailure, ItemHandler } from "./consuming.ts";
import { decodeItems, encodeItems } from "./items.ts";
import { deferMs, QueueView } from "./view.ts";

/** The longest sleep in ms. Then the clock is read again, because the system clock may have been changed. */
const longestSleepMs = 1_000;

export function defaultBackoffMs(failures: number): number {
  return Math.min(300_000, 1_000 * 2 ** Math.min(failures - 1, 20)) * (0.5 + Math.random() / 2);
}

export interface ConsumerSettings extends Required<Omit<ConsumeOptions, "signal" | "onFailure" | "onTrouble">> {
  readonly onFailure: ((failure: ItemFailure) => void) | undefined;
  readonly onTrouble: ((error: unknown) => void) | undefined;
  /** True if an item's rank is the time at which it is due, as in a delay queue. */
  readonly timed: boolean;
}

export class QueueConsumer implements Consumer {
  readonly ended: Promise<void>;
  /** Resolves when the queue has been listed for the first time. If that fails, `ready` rejects, and `ended` resolves. */
  readonly ready: Promise<void>;
  /** The functions that settle `ready`; undefined once it has settled. */
  #begun: { resolve: () => void; reject: (error: unknown) => void } | undefined;
  readonly #zk: ZooKeeper;
  readonly #layout: QueueLayout;
  readonly #handler: ItemHandler;
  readonly #settings: ConsumerSettings;
  readonly #view: QueueView;
  /** The data of this consumer's locks. */
  readonly #token: string = randomUUID();
  readonly #stop = new AbortController();
  readonly #abort = new AbortController();
  /** Resolvers of claimed items that are due but wait until another handler has ended. */
  readonly #startable: (() => void)[] = [];
  #session: Session | undefined;
  /**
   * Aborts when the consumer is aborted and, with a lock path, when the session ends. All items share one signal, because there may be
   * thousands of items.
   */
  #itemSignal: AbortSignal = this.#abort.signal;
  #running = 0;
  /** The number of claimed items that are not due yet. */
  #early = 0;
  #timer: NodeJS.Timeout | undefined;
  #woken = false;
  #idle: (() => void) | undefined;

  /** @param over called when the consumer has ended */
  constructor(zk: ZooKeeper, layout: QueueLayout, handler: ItemHandler, settings: ConsumerSettings, over: () => void) {
    this.#zk = zk;
    this.#layout = layout;
    this.#handler = handler;
    this.#settings = settings;
    this.#view = new QueueView(
      layout,
      settings.timed,
      () => this.#wake(),
      (error) => settings.onTrouble?.(error),
    );
    // Each running item adds a listener. A large number of listeners is no leak here. This removes Node's limit of ten.
    setMaxListeners(0, this.#stop.signal, this.#abort.signal);
    this.ready = new Promise((resolve, reject) => {
      this.#begun = { resolve, reject };
    });
    this.ended = this.#run().finally(over);
  }

  get known(): number {
    return this.#view.known;
  }

  /** Stops at once: aborts the signals of running handlers. */
  abort(): void {
    this.#abort.abort();
    this.#stop.abort();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    // The promise `ended` reports the error to the caller.
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
    this.#view.close();
    for (const start of this.#startable.splice(0)) start();
    if (this.#view.held > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    if (this.#begun) {
      const hint = "consume again if that was not meant";
      this.#begun.reject(failure ?? new ZooKeeperError("ABORTED", `consume ${path}: given up`, { path, hint }));
      return;
    }
    // The end of the client ends its consumers, so it is not an error.
    if (failure !== undefined && !this.#zk.signal.aborted) throw failure;
  }

  /** Consumes the queue during one session. @returns "done" once the consumer is stopped; otherwise "again" */
  async #serve(session: Session): Promise<"again" | "done"> {
    const signal = this.#stop.signal;
    await createQueuePaths(session, this.#layout, signal);
    const ending = new AbortController();
    setMaxListeners(0, ending.signal);
    const end = () => ending.abort();
    session.signal.addEventListener("abort", end, { once: true });
    this.#abort.signal.addEventListener("abort", end, { once: true });
    if (session.signal.aborted || this.#abort.signal.aborted) end();
    this.#itemSignal = this.#layout.lockPath === undefined ? this.#abort.signal : ending.signal;
    try {
      await this.#view.keep(session, signal, () => {
        this.#session = session;
        this.#begun?.resolve();
        this.#begun = undefined;
        this.#wake();
      });
      return signal.aborted ? "done" : "again";
    } finally {
      this.#session = undefined;
      // During a graceful close the session is still live: handlers keep their locks, and their signals must still abort if the locks
      // are lost.
      if (!session.live) {
        end();
        session.signal.removeEventListener("abort", end);
        this.#abort.signal.removeEventListener("abort", end);
      }
    }
  }

  /** Schedules one call of `#advance`, even if it is called several times. */
  #wake(): void {
    if (this.#woken) return;
    this.#woken = true;
    setImmediate(() => {
      this.#woken = false;
      this.#advance();
    });
  }

  /** Claims items that are due now or within `claimAheadMs`, as far as the concurrency allows, and sets a timer for the next item. */
  #advance(): void {
    clearTimeout(this.#timer);
    const session = this.#session;
    if (!session?.live || this.#stop.signal.aborted) return;
    const { concurrency, claimAheadMs } = this.#settings;
    const now = Date.now();
    for (;;) {
      const first = this.#view.firstMs(now);
      const early = first > now;
      if (first > now + claimAheadMs) {
        if (first === Number.POSITIVE_INFINITY) return;
        const waitMs = Math.max(1, Math.min(longestSleepMs, first - claimAheadMs - now));
        this.#timer = setTimeout(() => this.#advance(), waitMs);
        return;
      }
      // Items that are claimed early do not count against the concurrency, so that they do not delay items that are already due.
      if (early ? this.#view.held >= concurrency : this.#view.held - this.#early >= concurrency) return;
      const name = this.#view.take();
      if (name === undefined) return;
      if (early) this.#early++;
      void this.#handle(session, name, early);
    }
  }

  /** Processes one item from its claim until it is deleted or put back. Never rejects. */
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
      // If the session has ended, the item's lock has ended too, and the list of the next session shows which items are left.
      again = session.live ? "defer" : "offer";
      if (session.live && !this.#stop.signal.aborted) this.#settings.onTrouble?.(error);
    }
    noLongerEarly();
    if (again === "drop" || this.#stop.signal.aborted) this.#view.drop(name);
    else if (again === "offer") this.#view.giveBack(name);
    else if (again === "locked") this.#view.layBy(session, name);
    else this.#view.defer(name);
    if (this.#stop.signal.aborted && this.#view.held === 0) this.#idle?.();
    this.#wake();
  }

  /**
   * Waits until an item that was claimed early is due, or the consumer stops. Returns undefined if the item is due already or its queue has
   * no times.
   */
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

  /** Processes the item as soon as fewer than `concurrency` handlers are running. */
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
      // The item could be neither deleted nor put back. Its lock would block it for all consumers while the session is live.
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
      await this.#giveBack(claim);
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
        // If a node contains several items, the finished ones are not processed again.
        const rest = i === 0 ? claim.data : encodeItems(items.slice(i));
        // An item whose handler was stopped by `abort` has not failed.
        if (this.#abort.signal.aborted) await this.#giveBack({ ...claim, data: rest }, i > 0);
        else await this.#fail(claim, rest, claim.begun + 1, error, claim.begun + 1 < attempts);
        return "drop";
      }
    }
    await complete(this.#layout, claim);
    return "drop";
  }

  /** Puts back an item that was not processed. With a lock, the attempt has already been counted. */
  async #giveBack(claim: Claim, changed = false): Promise<void> {
    if (this.#layout.lockPath !== undefined && !changed) await release(this.#layout, claim);
    else await this.#sendBack(claim, claim.data, claim.begun, claim.item.notBeforeMs);
  }

  async #fail(claim: Claim, data: Buffer, attempt: number, error: unknown, again: boolean): Promise<void> {
    const retryAtMs = again ? Date.now() + Math.ceil(Math.max(0, this.#settings.backoffMs(attempt))) : undefined;
    const { name } = claim;
    try {
      await this.#sendBack(claim, data, attempt, retryAtMs);
    } catch (trouble) {
      // With a lock, the item stays in the queue and is processed again. Without a lock the item is lost, and only this report names it.
      const locking = this.#layout.lockPath !== undefined;
      const staysAtMs = locking ? Date.now() + deferMs : undefined;
      if (claim.session.live || !locking) this.#settings.onFailure?.({ name, attempt, error, retryAtMs: staysAtMs });
      throw trouble;
    }
    this.#settings.onFailure?.({ name, attempt, error, retryAtMs });
  }

  /** Puts a failed item back. @param notBeforeMs epoch ms of the next attempt; undefined: moves the item to the poison path */
  async #sendBack(claim: Claim, data: Buffer, failures: number, notBeforeMs: number | undefined): Promise<void> {
    for (;;) {
      // Without a lock the item exists only in this process, so it is put back with the client's current session.
      const session = this.#layout.lockPath === undefined ? await this.#zk.established() : claim.session;
      try {
        const its = { ...claim, session };
        if (notBeforeMs === undefined) return await setAside(this.#layout, its, data, failures);
        return await sendBack(this.#layout, its, { data, failures, notBeforeMs });
      } catch (error) {
        if (this.#layout.lockPath !== undefined || session.live || this.#zk.signal.aborted) throw error;
        await pause(0); // lets timers run: the session has ended by the clock before the client's timer
      }
    }
  }
}
