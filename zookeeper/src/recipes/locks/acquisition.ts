/** Acquires locks with or without a time limit; an owner that already holds the lock can acquire it again. */
import { checkNames } from "../../base/options.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { Session } from "../../operations/session.ts";
import { fenceOf } from "../base/fence.ts";
import { waitFor } from "../base/waiting.ts";
import { type Held, Hold } from "./hold.ts";
import { type Line, type TurnOptions, takeTurn } from "./line.ts";

export interface AcquireOptions extends CallOptions {
  /**
   * Identifies the caller, compared like the key of a Map. If this owner already holds the lock, the call gets the same hold again, and the
   * owner must release the hold as often as it acquired it. Without an owner, every call queues separately.
   */
  readonly owner?: unknown;
}

export interface TryOptions extends AcquireOptions {
  /** The longest wait in ms. With 0, the default, the call does not wait: it gets the lock only if the lock is free. */
  readonly limitMs?: number;
}

const acquireNames: ReadonlySet<string> = new Set<keyof AcquireOptions>(["owner", "signal"]);
const tryNames: ReadonlySet<string> = new Set<keyof TryOptions>(["owner", "limitMs", "signal"]);

/** Accepts the option `owner` for every kind of lock, because a multi-lock passes it to all its locks. @throws OPTION_INVALID */
export function checkAcquireOptions(what: string, options: AcquireOptions): void {
  checkNames(what, "", options, acquireNames);
}

/** @throws OPTION_INVALID */
export function checkTryOptions(what: string, options: TryOptions): void {
  checkNames(what, "", options, tryNames);
}

/** A lock: a mutex, or either side of a read-write lock. */
export interface Lock {
  /**
   * Waits until it holds the lock. If the session ends first, the call queues again at the end, in the next session.
   * @throws ABORTED, CLOSED, NO_AUTH, OPTION_INVALID
   */
  acquire(options?: AcquireOptions): Promise<Held>;
  /** Acquires the lock within `limitMs`. @returns undefined if the limit passes first @throws as `acquire` */
  tryAcquire(options?: TryOptions): Promise<Held | undefined>;
  /** Returns the paths of the queued nodes, holders first, for `revoke`. */
  participants(options?: CallOptions): Promise<string[]>;
}

/** Calls `run` with a time limit. If `run` acquires its value only after the limit or the abort, `giveBack` releases the value. */
export function limited<T>(
  what: string,
  { limitMs, signal }: { limitMs?: number; signal?: AbortSignal },
  run: (options: Required<TurnOptions>) => Promise<T | undefined>,
  giveBack: (value: T) => void,
): Promise<T | undefined> {
  const givenUp = new AbortController();
  const limit = limitMs === 0 ? undefined : limitMs;
  return waitFor<T | undefined>(what, { limitMs: limit, signal }, (resolve, reject) => {
    run({ signal: givenUp.signal, wait: limitMs !== 0 }).then((value) => {
      if (!givenUp.signal.aborted) resolve(value);
      else if (value !== undefined) giveBack(value);
    }, reject);
    return () => givenUp.abort();
  });
}

/**
 * Queues until the lock is held.
 * @param fence the hold's fence; default: computed from the node's czxid
 * @returns undefined if `wait` is false and the lock is not free
 */
export async function takeHold(
  session: Session,
  line: Line,
  what: string,
  options: TurnOptions,
  fence?: bigint,
): Promise<Hold | undefined> {
  for (;;) {
    const node = await takeTurn(session, line, options);
    if (!node) return undefined;
    const hold = new Hold(session, node.path, what);
    try {
      const its = fence === undefined ? fenceOf(session, line, node.stat.czxid) : Promise.resolve(fence);
      if (await hold.begin(its, options.signal)) return hold;
    } catch (error) {
      hold.abandon();
      throw error;
    }
  }
}

/** A hold, and how often its owner has acquired it without releasing it. */
interface Share {
  readonly hold: Hold;
  count: number;
}

/** Acquires holds, and remembers the current hold of each owner. */
export class Acquisition {
  readonly #what: string;
  readonly #take: (options: Required<TurnOptions>, owner: unknown) => Promise<Hold | undefined>;
  readonly #giveUp: (hold: Hold, owner: unknown) => Promise<void>;
  readonly #shares = new Map<unknown, Share>();
  readonly #pending = new Map<unknown, Promise<unknown>>();

  /**
   * @param take acquires the hold for an owner that does not hold the lock
   * @param giveUp releases the hold once its owner has released every acquisition
   */
  constructor(
    what: string,
    take: (options: Required<TurnOptions>, owner: unknown) => Promise<Hold | undefined>,
    giveUp: (hold: Hold, owner: unknown) => Promise<void> = (hold) => hold.release(),
  ) {
    this.#what = what;
    this.#take = take;
    this.#giveUp = giveUp;
  }

  /** The current hold of this owner; undefined if it has none. */
  of(owner: unknown): Hold | undefined {
    const share = owner === undefined ? undefined : this.#shares.get(owner);
    return share?.hold.held ? share.hold : undefined;
  }

  async acquire(options: AcquireOptions): Promise<Held> {
    checkAcquireOptions(this.#what, options);
    const { owner, signal } = options;
    const held = await this.tryAcquire({ owner, signal, limitMs: Number.POSITIVE_INFINITY });
    // Never happens, because the attempt has no time limit.
    if (!held) throw new Error(`${this.#what}: waited without a limit, and in vain`);
    return held;
  }

  async tryAcquire(options: TryOptions): Promise<Held | undefined> {
    checkTryOptions(this.#what, options);
    const { owner, signal, limitMs = 0 } = options;
    return limited<Held>(
      this.#what,
      { limitMs, signal },
      (turn) => this.#acquire(turn, owner),
      // The error is ignored: no caller gets this hold, and the server deletes its node with the session at the latest.
      (held) => held.release().catch(() => undefined),
    );
  }

  async #acquire(options: Required<TurnOptions>, owner: unknown): Promise<Held | undefined> {
    if (owner === undefined) {
      const hold = await this.#take(options, owner);
      return hold && this.#grip({ hold, count: 0 }, owner);
    }
    for (;;) {
      const share = this.#shares.get(owner);
      if (share?.hold.held) return this.#grip(share, owner);
      const pending = this.#pending.get(owner);
      if (!pending) break;
      if (!options.wait) return undefined;
      // Waits for the pending attempt of the same owner. If that attempt fails, this call makes its own attempt.
      await waitFor(this.#what, options, (resolve) => {
        pending.then(resolve, resolve);
        return () => undefined;
      });
    }
    const taking = this.#take(options, owner);
    this.#pending.set(owner, taking);
    try {
      const hold = await taking;
      if (!hold) return undefined;
      const share = { hold, count: 0 };
      this.#shares.set(owner, share);
      hold.signal.addEventListener("abort", () => {
        if (this.#shares.get(owner) === share) this.#shares.delete(owner);
      });
      return this.#grip(share, owner);
    } finally {
      this.#pending.delete(owner);
    }
  }

  #grip(share: Share, owner: unknown): Held {
    share.count++;
    return new Grip(share, () => this.#giveUp(share.hold, owner));
  }
}

/** One acquisition of a hold by its owner. */
class Grip implements Held {
  readonly #share: Share;
  readonly #giveUp: () => Promise<void>;
  #released = false;

  constructor(share: Share, giveUp: () => Promise<void>) {
    this.#share = share;
    this.#giveUp = giveUp;
  }

  get path(): string {
    return this.#share.hold.path;
  }

  get session(): Session {
    return this.#share.hold.session;
  }

  get fence(): bigint {
    return this.#share.hold.fence;
  }

  get signal(): AbortSignal {
    return this.#share.hold.signal;
  }

  get revocation(): AbortSignal {
    return this.#share.hold.revocation;
  }

  get held(): boolean {
    return !this.#released && this.#share.hold.held;
  }

  async release(): Promise<void> {
    if (!this.held) throw this.#share.hold.notHeld();
    this.#released = true;
    if (--this.#share.count === 0) await this.#giveUp();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.held) await this.release();
  }
}
