/**
 * Coordinates the callers of one lock within a process: their requests run one after another, and between two attempts the callers wait
 * for a change of the lock.
 */
import { setMaxListeners } from "node:events";
import { ZooKeeperError } from "../../base/errors.ts";
import type { LockClock } from "./place.ts";

export class Turns {
  readonly #name: string;
  readonly #clock: LockClock;
  readonly #closed = new AbortController();
  readonly #wakes = new Set<() => void>();
  #line: Promise<unknown> = Promise.resolve();
  #changes = 0;

  /** @param name the lock's name, for messages */
  constructor(name: string, clock: LockClock) {
    this.#name = name;
    this.#clock = clock;
    // Removes Node's limit of ten listeners, because any number of callers may wait.
    setMaxListeners(0, this.#closed.signal);
  }

  /** The number of changes reported so far by `wake`; to be passed to `change`. */
  get changes(): number {
    return this.#changes;
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Runs `work` after all work that was queued before. @throws ABORTED, CLOSED, errors of `work` */
  async inLine<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const run = this.#line.then(() => {
      if (signal?.aborted) throw this.#given(signal);
      return work();
    });
    this.#line = run.catch(() => undefined); // the caller that queued the work gets the error
    return this.#abortable(run, signal);
  }

  /** Resolves when the number of reported changes differs from `seen`, or after `withinMs`. @throws ABORTED, CLOSED */
  async change(seen: number, signal?: AbortSignal, withinMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (this.#changes !== seen || withinMs === 0) return;
    let wake: () => void = () => undefined;
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    this.#wakes.add(wake);
    const cancel = withinMs < Number.POSITIVE_INFINITY ? this.#clock.after(withinMs, wake) : undefined;
    try {
      await this.#abortable(woken, signal);
    } finally {
      cancel?.();
      this.#wakes.delete(wake);
    }
  }

  async #abortable<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
    const either = this.withClose(signal);
    let stop: () => void = () => undefined;
    const aborted = new Promise<void>((resolve) => {
      stop = resolve;
      if (either.aborted) resolve();
      either.addEventListener("abort", stop, { once: true });
    });
    try {
      return await Promise.race([promise, aborted.then(() => Promise.reject(this.#given(signal)))]);
    } finally {
      either.removeEventListener("abort", stop);
    }
  }

  #given(signal?: AbortSignal): ZooKeeperError {
    if (this.#closed.signal.aborted) return this.#closed.signal.reason as ZooKeeperError;
    return new ZooKeeperError("ABORTED", `waiting for the grace lock ${this.#name} was given up`, {
      path: this.#name,
      cause: signal?.reason,
    });
  }

  /** Returns a signal that aborts when `signal` aborts or the lock is closed. */
  withClose(signal?: AbortSignal): AbortSignal {
    return signal ? AbortSignal.any([signal, this.#closed.signal]) : this.#closed.signal;
  }

  /** Reports a change: wakes all waiting callers. */
  wake(): void {
    this.#changes++;
    for (const wake of [...this.#wakes]) wake();
  }

  /** Closes the lock: all waiting callers reject with CLOSED. */
  close(): void {
    this.#closed.abort(this.closedError());
    this.wake();
  }

  closedError(): ZooKeeperError {
    return new ZooKeeperError("CLOSED", `the grace lock ${this.#name} is closed`, { path: this.#name });
  }
}
