import { randomUUID } from "node:crypto";
import { pause } from "../../base/clock.ts";
import { CarillonError, isCarillonError, isStoreAway } from "../../base/errors.ts";
import { type LockKind, type LockPlace, type PermitSpec, type Permits, sizeDiffers } from "../../cluster/locks.ts";
import { RedisConnection, type RedisConnectionOptions } from "./connection.ts";
import { beatsPerTtl, HeldRedisLock, type RedisLockKeys } from "./held-lock.ts";
import { RedisLockPlace, type RedisLockPlaceOptions } from "./lock-place.ts";
import { own, release, take } from "./lock-scripts.ts";

export interface RedisLocksOptions extends RedisLockPlaceOptions, Omit<RedisConnectionOptions, "timeoutMs" | "probe"> {
  /** The cluster's id in the store: a Redis that serves another under the same prefix is refused. */
  readonly clusterId: string;
  /** How long a holder may be silent before it loses the lock, ms, unless a lock's own option says otherwise. Default 10,000. */
  readonly ttlMs?: number;
}

export interface RedisLockOptions {
  /** How long a holder may be silent, ms; at least 300. Default: the value given to `RedisLocks`. */
  readonly ttlMs?: number;
  /** Grants the lock in the order of the requests, instead of by chance. Default false. */
  readonly fair?: boolean;
  /** The longest random pause in ms between two attempts to take a lock without `fair`. Default 500. */
  readonly longestPauseMs?: number;
  /** How many clients may hold the lock at once; the same number for all its users. Default 1. */
  readonly permits?: number;
  /** The kind of lock; each kind has a namespace of its own. Default "lock". */
  readonly kind?: LockKind;
}

export interface RedisLockRequest {
  /** How long to wait at most, ms; 0: do not wait. Default of `tryAcquire`: 0. */
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

  /** @throws the errors of RedisConnection.open; COORDINATION_FOREIGN */
  static async open(options: RedisLocksOptions): Promise<RedisLocks> {
    const connection = await RedisConnection.open({
      ...options,
      timeoutMs: 2_000,
      probe: (opened) => opened.run(own, [`{${opened.address.prefix}}:cluster`], [options.clusterId]),
    });
    return new RedisLocks(new RedisLockPlace(connection, options), options.ttlMs ?? 10_000);
  }

  /** @throws OPTION_INVALID */
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

  /** Redis offers no grace locks, because a fail-over can lose the record: see docs/locks.md. */
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
 * A lock for one holder at a time, for as long as the holder renews it. A holder that stood still for longer than the TTL has lost the lock
 * and may not know: `held` and `signal` show this by this machine's monotonic clock, and the fence lets the protected resource refuse late
 * writes. If Redis forgot the holder or its wall clock stepped, two processes may hold the lock at once, with different fences; then only
 * the fence protects the resource.
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

  /** Waits for the lock, also while Redis is away. @throws COORDINATION_REFUSED; the signal's reason */
  async acquire({ signal }: { signal?: AbortSignal } = {}): Promise<HeldRedisLock> {
    const held = await this.tryAcquire({ limitMs: Number.POSITIVE_INFINITY, signal });
    // Only a limit can end the wait without a lock and without an error.
    if (!held) throw new Error(`the lock ${this.name}: waited without a limit, and in vain`);
    return held;
  }

  /** @returns undefined when the limit is over. @throws as `acquire`; COORDINATION_UNREACHABLE with a limit of 0 */
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
        // Registered before the request, so that no message about it is missed.
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
      // Removes this token from the queue, or releases the lock if its answer was lost or came too late.
      if (!held && traces) await this.#giveUp(token);
    }
  }

  /** @returns the lock; or how long to wait before the next attempt, and whether the outcome of this attempt is unknown */
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
        // In a queue: the first waiter waits until the holder's time is over; the others ask often enough not to lose their place.
        const ends = leftMs < 0 ? Number.POSITIVE_INFINITY : leftMs + 1;
        const waitMs = fair
          ? Math.min(ends, ttlMs / beatsPerTtl)
          : Math.min(ends + random.next() * firstPauseMs, byChance);
        return { waitMs, unknown: false };
      }
    } catch (error) {
      // The request may have been carried out; in that case the next attempt, which has the same token, finds that it holds the lock.
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
      if (!isCarillonError(error)) throw error; // a token that stayed in Redis expires there
    }
  }
}
