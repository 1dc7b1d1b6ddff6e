/**
 * Several locks that are acquired together: either all of them are held, or none. Like Java Curator's InterProcessMultiLock, it acquires
 * them one after another in the given order. Programs that share some of the locks must give them in the same order; otherwise they can
 * deadlock.
 */
import { ZooKeeperError } from "../../base/errors.ts";
import { heardByMany } from "../../base/signals.ts";
import {
  type AcquireOptions,
  checkAcquireOptions,
  checkTryOptions,
  type Lock,
  limited,
  type TryOptions,
} from "./acquisition.ts";
import type { Held } from "./hold.ts";
import type { TurnOptions } from "./line.ts";

/** The result of acquiring a multi-lock: holds of all its locks. */
export interface HeldTogether {
  /** The holds in the order of the locks. Each has its own fence, for the resource that its lock protects. */
  readonly parts: readonly Held[];
  /** Aborts when one of the locks is no longer held. The other locks are held until `release`. */
  readonly signal: AbortSignal;
  /** Aborts when another client requests one of the locks (`revoke`). */
  readonly revocation: AbortSignal;
  /** True while all locks are held, by the monotonic clock at the time of the call. */
  readonly held: boolean;
  /**
   * Releases the locks that are still held, in reverse order.
   * @throws NOT_HELD if one of them was lost, or all have been released already; an error that prevents a node's deletion
   */
  release(): Promise<void>;
  /** Releases the locks that are still held. */
  [Symbol.asyncDispose](): Promise<void>;
}

export class MultiLock {
  readonly #locks: readonly Pick<Lock, "acquire" | "tryAcquire">[];

  /** @param locks mutexes, sides of read-write locks, semaphores @throws OPTION_INVALID if the array is empty */
  constructor(locks: readonly Pick<Lock, "acquire" | "tryAcquire">[]) {
    if (locks.length === 0) {
      const hint = "name the locks that are to be held together";
      throw new ZooKeeperError("OPTION_INVALID", "a multi-lock of no locks", { hint });
    }
    this.#locks = [...locks];
  }

  /**
   * Waits until all locks are held. If a lock is lost while this call waits for others, it starts again.
   * @throws errors of the locks: ABORTED, CLOSED, NO_AUTH
   */
  async acquire(options: AcquireOptions = {}): Promise<HeldTogether> {
    checkAcquireOptions("a multi-lock", options);
    const held = await this.tryAcquire({ ...options, limitMs: Number.POSITIVE_INFINITY });
    // Never happens, because the attempt has no time limit.
    if (!held) throw new Error("a multi-lock waited without a limit, and in vain");
    return held;
  }

  /** @param options.limitMs the time limit for all locks together @returns undefined if the limit passes first @throws as `acquire` */
  async tryAcquire(options: TryOptions = {}): Promise<HeldTogether | undefined> {
    checkTryOptions("a multi-lock", options);
    const { owner, limitMs = 0, signal } = options;
    return limited<Together>(
      "a multi-lock",
      { limitMs, signal },
      (turn) => this.#take(turn, owner),
      // The error is ignored: no caller gets these holds, and the server deletes their nodes with the session at the latest.
      (together) => together[Symbol.asyncDispose]().catch(() => undefined),
    );
  }

  async #take(options: Required<TurnOptions>, owner: unknown): Promise<Together | undefined> {
    for (;;) {
      const together = new Together();
      const taken = await this.#add(together, options, owner).catch(async (error: unknown) => {
        const lost = together.signal.aborted && !options.signal.aborted;
        if (lost) return true;
        await together[Symbol.asyncDispose]();
        throw error;
      });
      if (taken && together.complete(this.#locks.length)) return together;
      await together[Symbol.asyncDispose]();
      if (!taken) return undefined;
    }
  }

  /** Acquires the locks one after another. @returns false if `wait` is false and a lock is not free */
  async #add(together: Together, { signal, wait }: Required<TurnOptions>, owner: unknown): Promise<boolean> {
    const attempt = new AbortController();
    const stop = () => attempt.abort(signal.reason);
    heardByMany(signal).addEventListener("abort", stop);
    together.signal.addEventListener("abort", stop); // if a lock is lost, waiting for the next one is useless
    try {
      for (const lock of this.#locks) {
        const asked = { owner, signal: attempt.signal };
        const part = wait ? await lock.acquire(asked) : await lock.tryAcquire(asked);
        if (!part) return false;
        together.add(part);
      }
      return true;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }
}

class Together implements HeldTogether {
  readonly parts: Held[] = [];
  readonly #over = new AbortController();
  readonly #revocation = new AbortController();
  readonly #undo: (() => void)[] = [];

  add(part: Held): void {
    this.parts.push(part);
    this.#undo.push(forward(part.signal, this.#over), forward(part.revocation, this.#revocation));
  }

  /** True if all locks have been added and are held. */
  complete(locks: number): boolean {
    return this.parts.length === locks && this.held;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get revocation(): AbortSignal {
    return this.#revocation.signal;
  }

  get held(): boolean {
    return !this.#over.signal.aborted && this.parts.every((part) => part.held);
  }

  async release(): Promise<void> {
    const { held } = this;
    const { reason: cause } = this.signal;
    await this[Symbol.asyncDispose]();
    if (held) return;
    const hint = "one of its locks was released or lost before: someone else may have it now";
    throw new ZooKeeperError("NOT_HELD", "a multi-lock is not held", { hint, cause });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const undo of this.#undo.splice(0)) undo();
    this.#over.abort(new ZooKeeperError("NOT_HELD", "the multi-lock has been released"));
    const failures: unknown[] = [];
    for (const part of this.parts.toReversed()) {
      await part[Symbol.asyncDispose]().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** Aborts `to` when `from` aborts. @returns a function that stops this */
function forward(from: AbortSignal, to: AbortController): () => void {
  const abort = () => to.abort(from.reason);
  if (from.aborted) abort();
  else heardByMany(from).addEventListener("abort", abort);
  return () => from.removeEventListener("abort", abort);
}
