import { setMaxListeners } from "node:events";
import type { GraceLock, GraceLockOptions } from "@carillon/zookeeper";
import { type Clock, EarliestTimer, pause } from "../base/clock.ts";
import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError, isCarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { checkNames } from "../base/nearest.ts";
import {
  checkLockName,
  checkPermits,
  type Election,
  type ElectionOptions,
  type Held,
  type Lock,
  type LockOptions,
  type LockPlace,
  type PermitSpec,
  type Permits,
  type SemaphoreOptions,
  type TryOptions,
  type WaitOptions,
  whileWaiting,
} from "../cluster/locks.ts";
import { LockElection } from "./election.ts";

export interface LocksOptions {
  /** Opens the driver of the locks. Called at the first use, and at the next use after a failure or after `rest`. */
  readonly open: () => Promise<LockPlace>;
  /** Called after the driver has been closed because no lock is held or waited for. */
  readonly rest?: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  /** How long a term that is given up waits for `onLead` to settle, in ms. */
  readonly drainMs: number;
  /** The configured name of this process, which is the same after a restart; null if none was given. */
  readonly owner: string | null;
  /**
   * True: a waiting call rejects if the driver cannot be opened because the store or the service is unreachable, instead of
   * retrying.
   */
  readonly failFast: boolean;
}

export interface GraceOptions extends Omit<GraceLockOptions, "owner" | "graceMs" | "clock"> {
  /** This candidate's name: the same after a restart, and unique among processes. Default: the configured name of the process, if any. */
  readonly owner?: string;
  /** How long other candidates wait after the holder has disappeared, so that it can return; default 10 s. */
  readonly grace?: Duration;
}

const retryMs = 1_000;
/** How long the driver stays open after the last use, in ms, so that a program that uses locks repeatedly does not reopen it each time. */
const restAfterMs = 2_000;

/** All locks of one `Carillon`, kept in the store or in its coordination service. */
export class Locks {
  readonly #options: LocksOptions;
  readonly #stopping = new AbortController();
  readonly #users = new Set<{ close(): Promise<void> }>();
  #place: Promise<LockPlace> | undefined;
  /** The opened driver: the value with which `#place` has resolved. */
  #there: LockPlace | undefined;
  #closed: Promise<void> | undefined;
  /** The number of requests in progress and of locks and permits that are held. */
  #inUse = 0;
  #resting: Promise<void> = Promise.resolve();
  readonly #restTimer: EarliestTimer;

  constructor(options: LocksOptions) {
    this.#options = options;
    this.#restTimer = new EarliestTimer(options.clock, () => this.#restIfIdle());
    setMaxListeners(0, this.#stopping.signal);
  }

  /** Returns a lock with this name; sends no request yet. @throws OPTION_INVALID, STOPPED */
  lock(name: string, options: LockOptions = {}): Lock {
    this.#check("a lock", name, options, ["fair"]);
    const { fair = false } = options;
    return this.#lockOf({ kind: "lock", name, permits: 1, fair });
  }

  /** Returns a semaphore with this name; sends no request yet. @throws OPTION_INVALID, STOPPED */
  semaphore(name: string, options: SemaphoreOptions): Lock {
    this.#check("a semaphore", name, options, ["permits", "fair"]);
    const { permits, fair = false } = options;
    checkPermits(name, permits);
    return this.#lockOf({ kind: "semaphore", name, permits, fair });
  }

  /** Becomes a candidate in the election with this name. @throws OPTION_INVALID, STOPPED */
  elect(name: string, options: ElectionOptions): Election {
    this.#check("an election", name, options, ["onLead"]);
    const { onLead } = options;
    if (typeof onLead !== "function") {
      throw new CarillonError("OPTION_INVALID", `the election ${name} has no onLead`, {
        hint: "Give a function: it is called with each term of this process.",
      });
    }
    const permits = this.#permits({ kind: "election", name, permits: 1, fair: true });
    const { clock, log, drainMs } = this.#options;
    const acquire = async (signal: AbortSignal) => (await this.#acquire(name, permits, true, { signal })) as Held;
    const election = new LockElection(name, { onLead, clock, log, drainMs, acquire });
    this.#users.add(election);
    return {
      name,
      get term() {
        return election.term;
      },
      close: () => this.#close(election),
      [Symbol.asyncDispose]: () => this.#close(election),
    };
  }

  /** Returns a grace lock with this name. @throws OPTION_INVALID, STOPPED, COORDINATION_UNSUPPORTED, STORE_…, COORDINATION_… */
  async graceLock(name: string, options: GraceOptions): Promise<GraceLock> {
    this.#check("a grace lock", name, options, ["owner", "grace", "onTakenOver", "onLost", "onState"]);
    const { owner = this.#options.owner ?? "", grace = "10s", ...told } = options;
    if (typeof owner !== "string" || owner === "") {
      throw new CarillonError("OPTION_INVALID", `the grace lock ${name} does not know whose it would be`, {
        hint: "Give `owner`, or the process a `name`: the same after a restart, and no other process's.",
      });
    }
    const graceMs = parseDuration(grace, "grace", 0);
    const asked = this.#use();
    try {
      const place = await whileWaiting(this.#opened(), this.#stopping.signal);
      const lock = place.graceLock(name, { ...told, owner, graceMs });
      this.#users.add(lock);
      lock.closed.addEventListener("abort", () => this.#forget(lock), { once: true });
      return lock;
    } finally {
      asked();
    }
  }

  /** Ends the elections: each term ends once `onLead` has settled, or after `drainMs`. Other locks stay held. Never rejects. */
  async closeElections(drainMs: number): Promise<void> {
    const elections = [...this.#users].filter((user) => user instanceof LockElection);
    await Promise.allSettled(elections.map((election) => election.close(drainMs))); // `close` of each election reports its own errors
  }

  /** Releases all locks and cancels all waiting with STOPPED. Never rejects. */
  close(): Promise<void> {
    this.#closed ??= this.#stop();
    return this.#closed;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort(stopped());
    this.#restTimer.close();
    const ended = await Promise.allSettled([...this.#users].map((user) => user.close()));
    for (const one of ended)
      if (one.status === "rejected")
        this.#options.log.warn({ error: String(one.reason) }, "a lock could not be released");
    // If opening the driver failed, there is nothing to close.
    const [place] = await Promise.allSettled([this.#place]);
    if (place.status === "fulfilled") await place.value?.close();
    await this.#resting;
  }

  async #close(election: LockElection): Promise<void> {
    await election.close();
    this.#forget(election);
  }

  #forget(user: { close(): Promise<void> }): void {
    this.#users.delete(user);
    this.#restLater();
  }

  /** Counts a use of the driver. @returns a function that the caller must call once when the use has ended */
  #use(): () => void {
    this.#inUse++;
    this.#restTimer.clear();
    return () => {
      this.#inUse--;
      this.#restLater();
    };
  }

  #restLater(): void {
    if (this.#there && this.#isIdle) this.#restTimer.within(restAfterMs);
  }

  get #isIdle(): boolean {
    return this.#inUse === 0 && this.#users.size === 0 && !this.#stopping.signal.aborted;
  }

  /** Closes the driver if no lock is in use, because an open connection would prevent the process from exiting. */
  #restIfIdle(): void {
    const place = this.#there;
    if (!place || !this.#isIdle) return;
    this.#place = this.#there = undefined;
    const rest = async () => {
      await place.close();
      await this.#options.rest?.();
    };
    this.#resting = rest().catch((error: unknown) => {
      this.#options.log.warn({ error: messageOf(error) }, "what the locks rested on could not be closed");
    });
  }

  #check(kind: string, name: unknown, options: object, known: readonly string[]): void {
    checkLockName(kind, name);
    checkNames(kind, options, known);
    this.#stopping.signal.throwIfAborted();
  }

  #lockOf(spec: PermitSpec): Lock {
    const permits = this.#permits(spec);
    const { name } = spec;
    return {
      name,
      acquire: async (options = {}) => {
        checkNames("acquire", options, ["wait", "signal"]);
        const held = await this.#acquire(name, permits, true, options);
        if (!held) throw new Error(`${name}: waited without a limit, and in vain`);
        return held;
      },
      tryAcquire: async (options = {}) => {
        checkNames("tryAcquire", options, ["signal"]);
        return this.#acquire(name, permits, false, options);
      },
    };
  }

  /**
   * Returns a getter for one lock's permits. They are created again when the driver was reopened, because they may hold the driver's state.
   */
  #permits(spec: PermitSpec): () => Promise<Permits> {
    let known: { place: LockPlace; permits: Permits } | undefined;
    return async () => {
      const place = await this.#opened();
      if (known?.place !== place) known = { place, permits: place.permits(spec) };
      return known.permits;
    };
  }

  /**
   * Acquires a permit. Waiting ends with the user's signal, the time limit, or `close`, whichever comes first.
   * @returns undefined only if `wait` is false and no permit was acquired
   */
  async #acquire(
    name: string,
    permits: () => Promise<Permits>,
    wait: boolean,
    { signal, wait: limit }: WaitOptions & TryOptions,
  ): Promise<Held | undefined> {
    const limitMs = limit === undefined ? undefined : parseDuration(limit, "wait", 0);
    const end = new AbortController();
    const reasons = [this.#stopping.signal, ...(signal ? [signal] : [])];
    const stops = reasons.map((one) => {
      const stop = () => end.abort(one.reason);
      if (one.aborted) stop();
      else one.addEventListener("abort", stop, { once: true });
      return () => one.removeEventListener("abort", stop);
    });
    // A program may pass one signal to a thousand waits at once; without this, Node.js warns of a possible memory leak.
    if (signal) setMaxListeners(0, signal);
    const busy = () =>
      end.abort(
        new CarillonError("LOCK_BUSY", `${name} was not to be had within ${limitMs} ms`, {
          hint: "Wait longer, or come back later.",
        }),
      );
    const cancel = limitMs === undefined ? () => undefined : this.#options.clock.after(limitMs, busy);
    const asked = this.#use();
    try {
      end.signal.throwIfAborted();
      const held = await (await this.#patiently(permits, wait, end.signal)).acquire(wait, end.signal);
      if (held) this.#keepWhile(held);
      return held;
    } finally {
      asked();
      cancel();
      for (const stop of stops) stop();
    }
  }

  #keepWhile({ signal }: Held): void {
    const over = this.#use();
    if (signal.aborted) over();
    else signal.addEventListener("abort", over, { once: true });
  }

  async #patiently(permits: () => Promise<Permits>, wait: boolean, signal: AbortSignal): Promise<Permits> {
    for (;;) {
      try {
        return await whileWaiting(permits(), signal);
      } catch (error) {
        signal.throwIfAborted();
        const isAway = isStoreAway(error) || isCarillonError(error, "COORDINATION_UNREACHABLE");
        if (!wait || !isAway || this.#options.failFast) throw error;
        await pause(this.#options.clock, retryMs, signal);
      }
    }
  }

  #opened(): Promise<LockPlace> {
    this.#place ??= this.#open().catch((error: unknown) => {
      this.#place = undefined;
      throw error;
    });
    return this.#place;
  }

  async #open(): Promise<LockPlace> {
    await this.#resting;
    this.#there = await this.#options.open();
    this.#restLater();
    return this.#there;
  }
}

const stopped = () => new CarillonError("STOPPED", "this Carillon has been stopped", { hint: "Make a new one." });
