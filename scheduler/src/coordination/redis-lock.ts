import { randomUUID } from "node:crypto";
import { pause } from "../clock.ts";
import { CarillonError, isCarillonError } from "../errors.ts";
import { RedisConnection, type RedisConnectionOptions } from "./redis-connection.ts";
import { beatsPerTtl, HeldRedisLock, type RedisLockKeys } from "./redis-lock-held.ts";
import { RedisLockPlace, type RedisLockPlaceOptions } from "./redis-lock-place.ts";
import { own, release, take, takeInTurn } from "./redis-lock-scripts.ts";

export interface RedisLocksOptions extends RedisLockPlaceOptions, Omit<RedisConnectionOptions, "timeoutMs" | "probe"> {
  /** The cluster's id in the store: a Redis that serves another under the same prefix is refused. */
  readonly clusterId: string;
}

export interface RedisLockOptions {
  /** For how long a holder may be silent, ms, 300 at least. Default 10,000. */
  readonly ttlMs?: number;
  /** In the order in which they asked, instead of by chance. Default false. */
  readonly fair?: boolean;
  /** The longest pause between two attempts of one that waits by chance, ms. Default 500. */
  readonly longestPauseMs?: number;
}

export interface RedisLockRequest {
  /** How long to wait at most, ms; 0: not at all. Default of `tryAcquire`: 0. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal;
}

const firstPauseMs = 5;
const shortestTtlMs = 300;

/** Locks in one Redis, by one connection. */
export class RedisLocks {
  readonly #place: RedisLockPlace;

  private constructor(place: RedisLockPlace) {
    this.#place = place;
  }

  /** @throws as RedisConnection.open; COORDINATION_FOREIGN */
  static async open(options: RedisLocksOptions): Promise<RedisLocks> {
    const connection = await RedisConnection.open({
      ...options,
      timeoutMs: 2_000,
      probe: (opened) => opened.run(own, [`{${opened.address.prefix}}:cluster`], [options.clusterId]),
    });
    return new RedisLocks(new RedisLockPlace(connection, options));
  }

  /** @throws OPTION_INVALID */
  lock(name: string, options: RedisLockOptions = {}): RedisLock {
    const { ttlMs = 10_000, fair = false, longestPauseMs = 500 } = options;
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
    return new RedisLock(this.#place, name, { ttlMs, fair, longestPauseMs });
  }

  /** Closes the connection. What is held is no longer renewed; release it before. */
  close(): void {
    this.#place.connection.close();
  }
}

/**
 * A lock for one holder at a time, for as long as that one goes on saying so. A holder that stood still for longer than
 * the TTL has lost it and may not know: `held` and `signal` tell by this machine's monotonic clock, and the fence lets
 * whatever is protected refuse the late one. Only the fence is safe against a Redis that forgot who holds the lock, or
 * whose wall clock stepped: then two may hold it, with different fences.
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
    const own = `{${place.connection.address.prefix}:lock:${name}}`;
    this.#keys = [own, `${own}:fence`, `${own}:queue`, `${own}:deadlines`];
  }

  /** Waits for its turn, also while Redis is away. @throws COORDINATION_REFUSED; the signal's reason */
  async acquire({ signal }: { signal?: AbortSignal } = {}): Promise<HeldRedisLock> {
    const held = await this.tryAcquire({ limitMs: Number.POSITIVE_INFINITY, signal });
    // Nothing but a limit ends the waiting without a lock and without an error.
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
        // Before the question, so that no answer to it comes unheard.
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
      // Its place in the queue, or the lock itself where an answer was lost or came too late.
      if (!held && traces) await this.#giveUp(token);
    }
  }

  /** @returns the lock, or how long to wait before the next attempt, and whether it is unknown what became of this one */
  async #attempt(
    token: string,
    attempt: number,
    patient: boolean,
  ): Promise<HeldRedisLock | { waitMs: number; unknown: boolean }> {
    const { connection, clock, random } = this.#place;
    const { ttlMs, fair, longestPauseMs } = this.#options;
    const longest = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempt, 20));
    const byChance = random.next() * longest;
    try {
      for (let base = "", asked = ""; ; ) {
        const began = clock.monotonic();
        const keys = fair ? this.#keys : this.#keys.slice(0, 2);
        const answer = await connection.run(fair ? takeInTurn : take, keys, [token, ttlMs, base, token, asked]);
        const [what, value] = answer as [number, string | number];
        if (what === 1)
          return new HeldRedisLock(this.#place, this.#keys, this.name, token, String(value), ttlMs, began);
        if (what === 2) {
          asked = String(value);
          base = await this.#place.base();
          continue;
        }
        const leftMs = Number(value);
        // In a queue: when the holder's time is over, if next; otherwise often enough not to lose the place.
        const ends = leftMs < 0 ? Number.POSITIVE_INFINITY : leftMs + 1;
        const waitMs = fair
          ? Math.min(ends, ttlMs / beatsPerTtl)
          : Math.min(ends + random.next() * firstPauseMs, byChance);
        return { waitMs, unknown: false };
      }
    } catch (error) {
      // It may have been done: then the next attempt, with the same token, finds that it holds the lock.
      if (!patient) await this.#giveUp(token);
      if (!patient || !isCarillonError(error, "COORDINATION_UNREACHABLE")) throw error;
      return { waitMs: connection.retryMs(), unknown: true };
    }
  }

  async #giveUp(token: string): Promise<void> {
    const [holder, , queue, deadlines] = this.#keys;
    try {
      await this.#place.connection.run(release, [holder, queue, deadlines], [token, this.#place.channel]);
    } catch (error) {
      if (!isCarillonError(error)) throw error; // whatever it is that stayed there lapses by itself
    }
  }
}
