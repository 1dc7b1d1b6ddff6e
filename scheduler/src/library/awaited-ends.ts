import { type Clock, pause } from "../base/clock.ts";
import { isCarillonError } from "../base/errors.ts";
import type { RunEnd } from "../run/run-end.ts";
import type { Store } from "../store/store.ts";

export interface AwaitedEndsOptions {
  /** The clock by which the timers of this class run. */
  clock: Clock;
  /** Returns the store's time in epoch milliseconds. */
  now: () => number;
  open: () => Promise<Pick<Store, "runs" | "signals">>;
}

interface Waiter {
  /** The earliest time at which the run may have ended, in epoch ms of the store's clock. */
  sinceMs: number;
  resolve: (end: RunEnd) => void;
  reject: (error: unknown) => void;
}

const runsPerStatement = 1_000;
/**
 * The delays of additional queries, in ms. A transaction that ends a run sends no signal if it began before the wait was
 * registered. These queries find the end that such a transaction commits, even on a slow disk.
 */
const looksAgainMs = [5, 50, 500];
/** The interval of the query that finds ended runs whose signal was lost. */
const lookEveryMs = 5_000;
/**
 * Every wait is registered again after this many queries, because a crash of the database server erases the registrations and they expire.
 */
const looksPerNote = 12;
const storeAwayMs = 500;
/**
 * How long the connection for signals stays open after the last wait, so that a caller that waits for one run after another does not
 * reconnect each time. A script that has finished exits this much later.
 */
const lingerMs = 1_000;

/**
 * Waits for the ends of runs, for all callers in this process. Waits are registered in the store. The transaction that ends a registered
 * run sends a signal; this class then queries the outcomes, for many runs at a time.
 * | event | action |
 * |---|---|
 * | a caller waits for a run | registers the wait, then queries the run, and again after 5, 50 and 500 ms |
 * | a signal that the run has ended | queries the run |
 * | signals were lost, or five seconds passed | queries all runs |
 * | the store is unreachable | repeats the query every half second, for as long as a caller waits |
 * | the last wait is over | closes the connection for signals one second later |
 */
export class AwaitedEnds {
  readonly #options: AwaitedEndsOptions;
  readonly #waiting = new Map<number, Waiter[]>();
  /** Runs whose wait is to be registered in the store, for the first time or again. */
  readonly #fresh = new Set<number>();
  /** Runs that the next statement queries. */
  readonly #due = new Set<number>();
  #asking = false;
  #listening: AbortController | undefined;
  #cancelLook: (() => void) | undefined;
  #cancelLinger: (() => void) | undefined;
  #looks = 0;
  #closed: unknown;

  constructor(options: AwaitedEndsOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the run has ended.
   * @param sinceMs the earliest time at which the run may have ended, by the store's clock
   * @param signal if aborted, the wait rejects with its reason
   * @throws the reason of `close`, and errors of the store other than STORE_UNREACHABLE
   */
  wait(runId: number, sinceMs: number, signal?: AbortSignal): Promise<RunEnd> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const aborted = () => {
        this.#leave(runId, waiter);
        reject(signal?.reason);
      };
      const over = () => signal?.removeEventListener("abort", aborted);
      const waiter: Waiter = {
        sinceMs,
        resolve: (end) => {
          over();
          resolve(end);
        },
        reject: (error) => {
          over();
          reject(error);
        },
      };
      signal?.addEventListener("abort", aborted, { once: true });
      const others = this.#waiting.get(runId);
      if (others) others.push(waiter);
      else this.#waiting.set(runId, [waiter]);
      this.#fresh.add(runId);
      this.#ask();
    });
  }

  /** Rejects all present and future waits with this reason. */
  close(why: unknown): void {
    this.#closed = why;
    for (const waiters of this.#waiting.values()) for (const { reject } of waiters) reject(why);
    this.#waiting.clear();
    this.#end();
  }

  #leave(runId: number, waiter: Waiter): void {
    const others = this.#waiting.get(runId)?.filter((other) => other !== waiter) ?? [];
    if (others.length > 0) this.#waiting.set(runId, others);
    else this.#forget(runId);
  }

  #forget(runId: number): void {
    this.#waiting.delete(runId);
    this.#fresh.delete(runId);
    this.#due.delete(runId);
    if (this.#waiting.size === 0) this.#cancelLinger ??= this.#options.clock.after(lingerMs, () => this.#end());
  }

  #end(): void {
    this.#listening?.abort();
    this.#listening = undefined;
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
  }

  /** Starts querying after the current synchronous code, so that one statement serves all waits that this code adds. */
  #ask(): void {
    if (this.#asking) return;
    this.#asking = true;
    queueMicrotask(async () => {
      try {
        await this.#askAll();
      } finally {
        this.#asking = false;
        this.#look([]);
      }
    });
  }

  /**
   * Registers waits and queries outcomes until `#fresh` and `#due` are empty. Never rejects: errors are passed to the waiting
   * callers.
   */
  async #askAll(): Promise<void> {
    while (this.#fresh.size + this.#due.size > 0 && this.#closed === undefined) {
      const fresh = taken(this.#fresh, runsPerStatement);
      for (const runId of fresh) this.#due.add(runId);
      const runIds = taken(this.#due, runsPerStatement);
      try {
        const { runs, signals } = await this.#options.open();
        this.#listen(signals);
        if (fresh.length > 0) await runs.awaitEnds(fresh, this.#options.now());
        // Some callers may have stopped waiting in the meantime.
        const awaited = runIds.filter((runId) => this.#waiting.has(runId));
        if (awaited.length > 0) for (const end of await runs.ends(awaited, this.#earliestOf(awaited))) this.#tell(end);
        if (fresh.length > 0) for (const ms of looksAgainMs) this.#options.clock.after(ms, () => this.#look(fresh));
      } catch (error) {
        if (!isCarillonError(error, "STORE_UNREACHABLE")) this.#fail(runIds, error);
        for (const runId of runIds) if (this.#waiting.has(runId)) this.#fresh.add(runId);
        await pause(this.#options.clock, storeAwayMs);
      }
    }
  }

  /** Returns the earliest time at which any of these runs may have ended. */
  #earliestOf(runIds: number[]): number {
    let earliest = Infinity;
    for (const runId of runIds)
      for (const { sinceMs } of this.#waiting.get(runId) ?? []) earliest = Math.min(earliest, sinceMs);
    return earliest;
  }

  #tell(end: RunEnd): void {
    const waiters = this.#waiting.get(end.runId) ?? [];
    this.#forget(end.runId);
    for (const { resolve } of waiters) resolve(end);
  }

  #fail(runIds: number[], error: unknown): void {
    for (const runId of runIds) {
      const waiters = this.#waiting.get(runId) ?? [];
      this.#forget(runId);
      for (const { reject } of waiters) reject(error);
    }
  }

  #look(runIds: Iterable<number>): void {
    for (const runId of runIds) if (this.#waiting.has(runId)) this.#due.add(runId);
    if (this.#fresh.size + this.#due.size > 0 && this.#closed === undefined) this.#ask();
  }

  #listen(signals: Store["signals"]): void {
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    if (this.#listening || this.#closed !== undefined) return;
    this.#listening = new AbortController();
    void signals.listen((signal) => {
      if (signal.kind === "ended") this.#look(signal.runIds);
      if (signal.kind === "resync") this.#look(this.#waiting.keys());
    }, this.#listening.signal);
    this.#lookRegularly();
  }

  #lookRegularly(): void {
    this.#cancelLook = this.#options.clock.after(lookEveryMs, () => {
      this.#looks++;
      if (this.#looks % looksPerNote === 0) for (const runId of this.#waiting.keys()) this.#fresh.add(runId);
      this.#look(this.#waiting.keys());
      this.#lookRegularly();
    });
  }
}

/** Removes up to `most` items from the set and returns them. */
function taken(from: Set<number>, most: number): number[] {
  const some: number[] = [];
  for (const one of from) {
    if (some.length === most) break;
    some.push(one);
    from.delete(one);
  }
  return some;
}
