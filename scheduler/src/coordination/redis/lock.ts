import { randomUUID } from "node:crypto";
import { pause } from "../../base/clock.ts";
import { CarillonError, isCarillonError, isStoreAway } from "../../base/errors.ts";
import { type LockKind, type LockPlace, type PermitSpec, type Permits, sizeDiffers } from "../../cluster/locks.ts";
import { RedisConnection, type RedisConnectionOptions } from "./connection.ts";
import { beatsPerTtl, HeldRedisLock, type RedisLockKeys } from "./held-lock.ts";
import { RedisLockPlace, type RedisLockPlaceOptions } from "./lock-place.ts";
import { own, release, take } from "./lock-scripts.ts";

export interface RedisLocksOptions extends RedisLockPlaceOptions, Omit<RedisConnectionOptions, "timeoutMs" | "probe"> {
  /** The cluster's id in the store. A Redis that already serves another cluster under this prefix is refused. */
  readonly clusterId: string;
  /** The time in ms after which a lock is lost that its holder has not renewed; locks may override it. Default 10,000. */
  readonly ttlMs?: number;
}

export interface RedisLockOptions {
  /** The time in ms after which the lock is lost if its holder has not renewed it; at least 300. Default: the value of `RedisLocks`. */
  readonly ttlMs?: number;
  /** True: grants the lock in the order of the requests. Default false: a waiting client retries after a random pause. */
  readonly fair?: boolean;
  /** The longest random pause in ms between two attempts if `fair` is false. Default 500. */
  readonly longestPauseMs?: number;
  /** How many clients may hold the lock at once; all its users must give the same number. Default 1. */
  readonly permits?: number;
  /** The kind of lock; the names of each kind are separate. Default "lock". */
  readonly kind?: LockKind;
}

export interface RedisLockRequest {
  /** The maximum time to wait in ms; 0: do not wait. Default 0. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal;
}

const firstPauseMs = 5;
const shortestTtlMs = 300;

/** Locks in one Redis, over one connection. */
export class RedisLocks implements LockPlace {
  readonly title = "Redis";
  readonly #place: RedisLockPlace;
  readonly #ttlMs: number;

  private constructor(place: RedisLockPlace, ttlMs: number) {
    this.#place = place;
    this.#ttlMs = ttlMs;
  }

  /** Connects and claims the key prefix for the cluster. @throws the errors of `RedisConnection.open`; COORDINATION_FOREIGN */
  static async open(options: RedisLocksOptions): Promise<RedisLocks> {
    const connection = await RedisConnection.open({
      ...options,
      timeoutMs: 2_000,
      probe: (opened) => opened.run(own, [`{${opened.address.prefix}}:cluster`], [options.clusterId]),
    });
    return new RedisLocks(new RedisLockPlace(connection, options), options.ttlMs ?? 10_000);
  }

  /** Returns a lock with this name; sends no request yet. @throws OPTION_INVALID */
  lock(name: string, options: RedisLockOptions = {}): RedisLock {
    const { ttlMs = this.#ttlMs, fair = false, longestPauseMs = 500, permits = 1, kind = "lock" } = options;
    if (!(ttlMs >= shortestTtlMs && Number.isInteger(ttlMs))) {
      throw new CarillonError("OPTION_INVALID", `the lock's ttlMs is ${ttlMs}`, {
        hint: `Give whole milliseconds, ${shortestTtlMs} or more: a holder beats ${beatsPerTtl} times in that time.`,
      });
    }
    if (!(longestPauseMs >= firstPauseMs && Number.isFinite(longestPauseMs))) {
      throw new CarillonError("OPTION_INVALID", `the lock's longestPauseMs is ${longestPauseMs}`, {
        hint: `Give milliseconds, ${firstPauseMs} or more.`,
      });
    }
    if (name === "" || name.length > 200 || /[{}\n]/.test(name)) {
      throw new CarillonError("OPTION_INVALID", `a lock cannot be called ${JSON.stringify(name)}`, {
        hint: "Give a name of 1 to 200 characters without braces.",
      });
    }
    return new RedisLock(this.#place, name, { ttlMs, fair, longestPauseMs, permits, kind });
  }

  permits(spec: PermitSpec): Permits {
    const lock = this.lock(spec.name, spec);
    return { acquire: (wait, signal) => (wait ? lock.acquire({ signal }) : lock.tryAcquire({ signal })) };
  }

  /**
   * Always throws: a grace lock needs a record that outlives its holder, and a Redis fail-over can lose it; see docs/coordination/locks.md.
   */
  graceLock(name: string): never {
    throw new CarillonError("COORDINATION_UNSUPPORTED", `the grace lock ${name} cannot be held in Redis`, {
      hint: "It rests on a record that outlives its holder, and Redis may lose it: use PostgreSQL alone or ZooKeeper.",
    });
  }

  /** Releases all held locks and closes the connection. */
  async close(): Promise<void> {
    await Promise.all([...this.#place.held].map((held) => held.release()));
    this.#place.connection.close();
  }
}

/**
 * A lock that a holder keeps by renewing it. A holder that was paused for longer than the TTL has lost the lock and may not know it: `held`
 * and `signal` reflect that by this machine's monotonic clock, and the protected resource can reject late writes by the fence. If Redis has
 * lost the holder, or its wall clock has stepped, two processes may hold the lock at once, with different fences; then only the fence
 * protects the resource.
 */
export class RedisLock {
  readonly name: string;
  readonly #place: RedisLockPlace;
  readonly #options: Required<RedisLockOptions>;
  readonly #keys: RedisLockKeys;

  constructor(place: RedisLockPlace, name: string, options: Required<RedisLockOptions>) {
    this.name = name;
    this.#place = place;
    this.#options = options;
    const own = `{${place.connection.address.prefix}:${options.kind}:${name}}`;
    this.#keys = [own, `${own}:fence`, `${own}:queue`, `${own}:deadlines`];
  }

  /**
   * Waits for the lock; retries while Redis, or the store for `fenceBase`, is unreachable.
   * @throws COORDINATION_REFUSED, COORDINATION_FOREIGN, COORDINATION_UNSUPPORTED, LOCK_SIZE_DIFFERS; other errors of
   * `fenceBase`; the signal's reason
   */
  async acquire({ signal }: { signal?: AbortSignal } = {}): Promise<HeldRedisLock> {
    const held = await this.tryAcquire({ limitMs: Number.POSITIVE_INFINITY, signal });
    // Without a time limit, `tryAcquire` returns a lock or throws.
    if (!held) throw new Error(`the lock ${this.name}: waited without a limit, and in vain`);
    return held;
  }

  /** @returns undefined if the lock was not acquired within `limitMs` @throws as `acquire`; COORDINATION_UNREACHABLE if `limitMs` is 0 */
  async tryAcquire({ limitMs = 0, signal }: RedisLockRequest = {}): Promise<HeldRedisLock | undefined> {
    signal?.throwIfAborted();
    const { clock } = this.#place;
    const ends = clock.monotonic() + limitMs;
    const token = randomUUID();
    const { fair } = this.#options;
    if (fair && limitMs > 0) this.#place.follow();
    let held: HeldRedisLock | undefined;
    let traces = fair;
    try {
      for (let attempt = 0; ; attempt++) {
        const woken = new AbortController();
        // Registered before the request, so that a message that arrives during the request is not missed.
        if (fair) this.#place.waiting.set(token, () => woken.abort());
        const got = await this.#attempt(token, attempt, limitMs > 0);
        if (got instanceof HeldRedisLock) {
          if (signal?.aborted) await got.release();
          signal?.throwIfAborted();
          held = got;
          return held;
        }
        traces ||= got.unknown;
        const left = ends - clock.monotonic();
        if (left <= 0) return undefined;
        const stop = () => woken.abort();
        signal?.addEventListener("abort", stop, { once: true });
        if (!signal?.aborted) await pause(clock, Math.min(got.waitMs, left), woken.signal);
        signal?.removeEventListener("abort", stop);
        signal?.throwIfAborted();
      }
    } finally {
      this.#place.waiting.delete(token);
      // Leaves the queue, and releases the lock in case an attempt succeeded without its answer arriving in time.
      if (!held && traces) await this.#giveUp(token);
    }
  }

  /**
   * Tries once.
   * @returns the lock, or the pause before the next attempt in ms; `unknown`: Redis may have granted the lock without an answer
   */
  async #attempt(
    token: string,
    attempt: number,
    patient: boolean,
  ): Promise<HeldRedisLock | { waitMs: number; unknown: boolean }> {
    const { connection, clock, random } = this.#place;
    const { ttlMs, fair, longestPauseMs, permits, kind } = this.#options;
    const { era, channel } = this.#place;
    const longest = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempt, 20));
    const byChance = random.next() * longest;
    try {
      for (let base = "", asked = ""; ; ) {
        const began = clock.monotonic();
        const args = [token, ttlMs, base, token, asked, era, permits, fair ? 1 : 0, channel];
        const answer = await connection.run(take, this.#keys, args);
        const [what, value] = answer as [number, string | number];
        if (what === 1)
          return new HeldRedisLock(this.#place, {
            keys: this.#keys,
            name: this.name,
            token,
            fence: String(value),
            ttlMs,
            began,
          });
        if (what === 2) {
          asked = String(value);
          base = await this.#place.base();
          continue;
        }
        if (what === 3) throw sizeDiffers({ kind, name: this.name, permits, fair }, value);
        const leftMs = Number(value);
        // A fair waiter retries when the holder's time ends, and often enough to keep its turn in the queue. Other waiters retry after a
        // random pause, which ends at the latest shortly after the holder's time.
        const ends = leftMs < 0 ? Number.POSITIVE_INFINITY : leftMs + 1;
        const waitMs = fair
          ? Math.min(ends, ttlMs / beatsPerTtl)
          : Math.min(ends + random.next() * firstPauseMs, byChance);
        return { waitMs, unknown: false };
      }
    } catch (error) {
      // Redis may have executed the request; then the next attempt, which has the same token, gets the lock.
      if (!patient) await this.#giveUp(token);
      const passing = isCarillonError(error, "COORDINATION_UNREACHABLE") || isStoreAway(error);
      if (!patient || !passing) throw error;
      return { waitMs: connection.retryMs(), unknown: true };
    }
  }

  async #giveUp(token: string): Promise<void> {
    try {
      await this.#place.connection.run(release, this.#keys, [token, this.#place.channel]);
    } catch (error) {
      if (!isCarillonError(error)) throw error; // a token that remains in Redis expires after its TTL
    }
  }
}
