/**
 * Several locks as one: all of them are held, or none. Takes them one after the other in the given order, as Java Curator's
 * InterProcessMultiLock does, so programs that share some of them must name these in the same order: otherwise each may
 * hold what the other waits for.
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

/** Several locks as their holder has them. */
export interface HeldTogether {
  /** In the order of the locks. Each has its own fence, for what that lock protects. */
  readonly parts: readonly Held[];
  /** Aborts when one of them is no longer held. The others stay held until `release`. */
  readonly signal: AbortSignal;
  /** Aborts when one of them is requested (`revoke`). */
  readonly revocation: AbortSignal;
  /** Judged by the monotonic clock at the moment of the call. */
  readonly held: boolean;
  /**
   * Releases all that are still held, the last one first.
   * @throws NOT_HELD when one of them was lost before, or all have been released; what keeps a node from being deleted
   */
  release(): Promise<void>;
  /** Releases those that are still held. */
  [Symbol.asyncDispose](): Promise<void>;
}

export class MultiLock {
  readonly #locks: readonly Pick<Lock, "acquire" | "tryAcquire">[];

  /** @param locks mutexes, sides of read-write locks, semaphores @throws OPTION_INVALID when there is none */
  constructor(locks: readonly Pick<Lock, "acquire" | "tryAcquire">[]) {
    if (locks.length === 0) {
      const hint = "name the locks that are to be held together";
      throw new ZooKeeperError("OPTION_INVALID", "a multi-lock of no locks", { hint });
    }
    this.#locks = [...locks];
  }

  /** Waits until all are held. If one is lost meanwhile, it begins again. @throws as the locks: ABORTED, CLOSED, NO_AUTH */
  async acquire(options: AcquireOptions = {}): Promise<HeldTogether> {
    checkAcquireOptions("a multi-lock", options);
    const held = await this.tryAcquire({ ...options, limitMs: Number.POSITIVE_INFINITY });
    // Nothing but a limit ends the waiting without a lock and without an error.
    if (!held) throw new Error("a multi-lock waited without a limit, and in vain");
    return held;
  }

  /** @param options.limitMs for all of them together @returns undefined if the limit passes first @throws as `acquire` */
  async tryAcquire(options: TryOptions = {}): Promise<HeldTogether | undefined> {
    checkTryOptions("a multi-lock", options);
    const { owner, limitMs = 0, signal } = options;
    return limited<Together>(
      "a multi-lock",
      { limitMs, signal },
      (turn) => this.#take(turn, owner),
      // Lost, or about to end with its session: no other is kept from it.
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

  /** @returns false when it should not wait and would have to */
  async #add(together: Together, { signal, wait }: Required<TurnOptions>, owner: unknown): Promise<boolean> {
    const attempt = new AbortController();
    const stop = () => attempt.abort(signal.reason);
    heardByMany(signal).addEventListener("abort", stop);
    together.signal.addEventListener("abort", stop); // what it waits for would be of no use
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

  /** True if all of the locks have been added and are held. */
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

/** @returns what ends it */
function forward(from: AbortSignal, to: AbortController): () => void {
  const abort = () => to.abort(from.reason);
  if (from.aborted) abort();
  else heardByMany(from).addEventListener("abort", abort);
  return () => from.removeEventListener("abort", abort);
}
