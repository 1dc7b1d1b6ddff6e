import { pause } from "../../base/clock.ts";
import { isCarillonError, messageOf } from "../../base/errors.ts";
import { type Held, notHeld } from "../../cluster/locks.ts";
import type { RedisLockPlace } from "./lock-place.ts";
import { release, renew } from "./lock-scripts.ts";

export type RedisLockKeys = readonly [holder: string, fence: string, queue: string, deadlines: string];

/**
 * Time in ms between the moment when this process stops relying on the lock and the earliest moment when another process can
 * hold it; at most a quarter of the TTL.
 */
const marginMs = 500;
const silent = "Redis did not answer for too long";
export const beatsPerTtl = 3;

export interface TakenRedisLock {
  keys: RedisLockKeys;
  name: string;
  token: string;
  fence: string;
  ttlMs: number;
  /** The time of the monotonic clock when the request that took the lock was sent. */
  began: number;
}

/** A held lock, which renews itself in Redis until it is released or lost. */
export class HeldRedisLock implements Held {
  readonly name: string;
  readonly fence: bigint;
  readonly #place: RedisLockPlace;
  readonly #keys: RedisLockKeys;
  readonly #token: string;
  readonly #ttlMs: number;
  readonly #end = new AbortController();
  #heldUntil: number;
  #cancelWatch: () => void = () => undefined;

  constructor(place: RedisLockPlace, { keys, name, token, fence, ttlMs, began }: TakenRedisLock) {
    this.#place = place;
    this.#keys = keys;
    this.name = name;
    this.fence = BigInt(fence);
    this.#token = token;
    this.#ttlMs = ttlMs;
    this.#heldUntil = this.#trustFrom(began);
    place.held.add(this);
    this.#watch();
    void this.#beat();
  }

  get held(): boolean {
    return !this.#end.signal.aborted && this.#place.clock.monotonic() < this.#heldUntil;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Releases the lock as described in `Held`. If the request does not reach Redis, the lock expires there after its TTL. */
  async release(): Promise<boolean> {
    const wasHeld = this.held;
    this.#finish("it was released");
    try {
      const { connection, channel } = this.#place;
      return (await connection.run(release, this.#keys, [this.#token, channel])) === 1 && wasHeld;
    } catch (error) {
      this.#place.log(`the lock ${this.name} was released, and Redis not told: ${messageOf(error)}`);
      return wasHeld;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#end.signal.aborted) await this.release();
  }

  #trustFrom(began: number): number {
    return began + this.#ttlMs - Math.min(marginMs, this.#ttlMs / 4);
  }

  async #beat(): Promise<void> {
    const { clock, connection } = this.#place;
    const usual = this.#ttlMs / beatsPerTtl;
    for (let waitMs = usual; ; ) {
      await pause(clock, waitMs, this.#end.signal);
      if (this.#end.signal.aborted) return;
      const began = clock.monotonic();
      try {
        const renewed = await connection.run(renew, this.#keys, [this.#token, this.#ttlMs]);
        // A late answer does not prolong the lock after `held` has become false, because the user may have seen that.
        if (renewed !== 1) return this.#finish("Redis has it no more");
        if (!this.held) return this.#finish(silent);
        this.#heldUntil = this.#trustFrom(began);
        waitMs = usual;
      } catch (error) {
        if (!isCarillonError(error)) {
          this.#place.log(`the lock ${this.name}: ${messageOf(error)}`);
          return this.#finish(messageOf(error));
        }
        waitMs = connection.retryMs(); // `held` becomes false when the lock's time is over, even without an answer
      }
    }
  }

  #watch(): void {
    const { clock } = this.#place;
    this.#cancelWatch = clock.after(this.#heldUntil - clock.monotonic(), () =>
      this.held ? this.#watch() : this.#finish(silent),
    );
  }

  #finish(why: string): void {
    this.#heldUntil = 0;
    this.#cancelWatch();
    this.#place.held.delete(this);
    this.#end.abort(notHeld(`the lock ${this.name}`, why));
  }
}
