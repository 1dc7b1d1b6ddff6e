import { randomUUID } from "node:crypto";
import { type Clock, pause, systemClock } from "../clock.ts";
import { CarillonError, isCarillonError } from "../errors.ts";
import { type Random, systemRandom } from "../random.ts";
import { RedisConnection, type RedisConnectionOptions, redisScript } from "./redis-connection.ts";

export interface RedisLocksOptions extends Omit<RedisConnectionOptions, "timeoutMs"> {
  /**
   * A whole number above every one it gave before, also to others, such as the next value of a sequence in the store.
   * Asked when Redis may have forgotten which fences it gave: at first use, and after a restart, a wipe or a fail-over.
   */
  readonly fenceBase: () => Promise<number>;
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

/** Safety between the end of belief here and the earliest moment at which another may hold it. */
const marginMs = 500;
const firstPauseMs = 5;
const shortestTtlMs = 300;
const beatsPerTtl = 3;

/**
 * The beginning of every script that takes. A fence is a base from outside and a count from here: base × 2^32 + count.
 * A server whose memory may be older than what it acknowledged (another run id or replication id), or is gone, asks
 * for a new base first, and takes it only in answer to the question it remembers: one fetched before a later loss
 * might lie below what was given meanwhile. Texts, because Lua's numbers end at 2^53.
 */
const fencing = `
local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
local server = string.match(info, 'run_id:(%w+)') .. string.match(info, 'master_replid:(%w+)')
local function fence(base, question, asked)
  local kept = redis.call('HMGET', KEYS[2], 'server', 'question')
  if kept[1] ~= server then
    if base == '' or kept[2] ~= asked or asked ~= question .. server then
      redis.call('HSET', KEYS[2], 'question', question .. server)
      return nil, question .. server
    end
    redis.call('HSET', KEYS[2], 'server', server, 'value', base)
    redis.call('HDEL', KEYS[2], 'question')
  end
  redis.call('HINCRBY', KEYS[2], 'value', 1)
  return redis.call('HGET', KEYS[2], 'value')
end
`;

/** KEYS: holder, fence. ARGV: token, ttl, base, question, asked. @returns {1, fence}, {0, ms left} or {2, question} */
const take = redisScript(`${fencing}
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 then return {0, left} end
local value, question = fence(ARGV[3], ARGV[4], ARGV[5])
if not value then return {2, question} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, value}
`);

/**
 * The same in a queue. KEYS as above and: queue (token → turn), deadlines (token → until when it waits, by Redis's
 * clock: a step of it may cost somebody's turn, and no more). Those who stopped asking lose their place.
 */
const takeInTurn = redisScript(`${fencing}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local token, ttl = ARGV[1], tonumber(ARGV[2])
for _, lost in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now)) do
  redis.call('ZREM', KEYS[3], lost)
  redis.call('ZREM', KEYS[4], lost)
end
if not redis.call('ZSCORE', KEYS[3], token) then
  redis.call('ZADD', KEYS[3], redis.call('HINCRBY', KEYS[2], 'turn', 1), token)
end
redis.call('ZADD', KEYS[4], now + ttl, token)
for i = 3, 4 do redis.call('PEXPIRE', KEYS[i], ttl * 2) end
local first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
local left = redis.call('PTTL', KEYS[1])
if first ~= token then return {0, -1} end
if left ~= -2 then return {0, left} end
local value, question = fence(ARGV[3], ARGV[4], ARGV[5])
if not value then return {2, question} end
redis.call('ZREM', KEYS[3], token)
redis.call('ZREM', KEYS[4], token)
redis.call('SET', KEYS[1], token, 'PX', ttl)
return {1, value}
`);

/** KEYS: holder. ARGV: token, ttl. Redis keeps what it is told, so one that lapsed is not brought back. */
const renew = redisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`);

/** KEYS: holder, queue, deadlines. ARGV: token, channel. Leaves the queue, or gives the lock up and tells who is next. */
const release = redisScript(`
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then redis.call('DEL', KEYS[1]) end
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if first and (not held or held == ARGV[1]) then redis.call('PUBLISH', ARGV[2], first) end
return held == ARGV[1] and 1 or 0
`);

/** Locks in one Redis, by one connection. */
export class RedisLocks {
  readonly #place: Place;

  private constructor(place: Place) {
    this.#place = place;
  }

  /** @throws as RedisConnection.open */
  static async open(options: RedisLocksOptions): Promise<RedisLocks> {
    const { clock = systemClock, random = systemRandom } = options;
    const connection = await RedisConnection.open({ ...options, timeoutMs: 2_000 });
    return new RedisLocks(new Place(connection, clock, random, options.fenceBase));
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

/** What all locks of a connection share. */
class Place {
  readonly connection: RedisConnection;
  readonly clock: Clock;
  readonly random: Random;
  readonly fenceBase: () => Promise<number>;
  readonly channel: string;
  /** Who waits for being told that it is next. */
  readonly waiting = new Map<string, () => void>();
  #following = false;

  constructor(connection: RedisConnection, clock: Clock, random: Random, fenceBase: () => Promise<number>) {
    this.connection = connection;
    this.clock = clock;
    this.random = random;
    this.fenceBase = fenceBase;
    const { prefix, database } = connection.address;
    this.channel = `{${prefix}}:turns:${database}`;
  }

  /** Messages were lost while it was not followed: then everybody looks. */
  follow(): void {
    if (this.#following) return;
    this.#following = true;
    this.connection.follow(
      this.channel,
      (token) => this.waiting.get(token)?.(),
      () => {
        for (const look of this.waiting.values()) look();
      },
    );
  }

  async base(): Promise<string> {
    const base = await this.fenceBase();
    // 31 bits: what Redis counts in has 63, and 32 are the count's.
    if (!Number.isInteger(base) || base < 0 || base >= 2 ** 31) {
      throw new CarillonError("OPTION_INVALID", `fenceBase gave ${base}`, {
        hint: "It must give whole numbers from 0 to 2,147,483,647, each above all before.",
      });
    }
    return String(BigInt(base) << 32n);
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
  readonly #place: Place;
  readonly #options: Required<RedisLockOptions>;
  readonly #keys: readonly [holder: string, fence: string, queue: string, deadlines: string];

  constructor(place: Place, name: string, options: Required<RedisLockOptions>) {
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
    try {
      for (let attempt = 0; ; attempt++) {
        const woken = new AbortController();
        // Before the question, so that no answer to it comes unheard.
        if (fair) this.#place.waiting.set(token, () => woken.abort());
        const wait = await this.#attempt(token, attempt, limitMs > 0);
        if (wait instanceof HeldRedisLock) {
          held = wait;
          if (!signal?.aborted) return held;
        }
        signal?.throwIfAborted();
        const left = ends - clock.monotonic();
        if (left <= 0 || wait instanceof HeldRedisLock) return undefined;
        const either = signal ? AbortSignal.any([signal, woken.signal]) : woken.signal;
        await pause(clock, Math.min(wait, left), either);
        signal?.throwIfAborted();
      }
    } catch (error) {
      await held?.release();
      throw error;
    } finally {
      this.#place.waiting.delete(token);
      if (!held && fair) await this.#leaveQueue(token);
    }
  }

  /** @returns the lock, or how long to wait before the next attempt, ms */
  async #attempt(token: string, attempt: number, patient: boolean): Promise<HeldRedisLock | number> {
    const { connection, clock, random } = this.#place;
    const { ttlMs, fair, longestPauseMs } = this.#options;
    const longest = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempt, 20));
    const byChance = random.next() * longest;
    try {
      for (let base = "", asked = ""; ; ) {
        const began = clock.monotonic();
        const keys = fair ? this.#keys : this.#keys.slice(0, 2);
        const question = asked === "" ? token : asked.slice(0, token.length);
        const answer = await connection.run(fair ? takeInTurn : take, keys, [token, ttlMs, base, question, asked]);
        const [what, value] = answer as [number, string | number];
        if (what === 1) return new HeldRedisLock(this.#place, this.#keys, this.name, token, String(value), ttlMs, began);
        if (what === 2) {
          asked = String(value);
          base = await this.#place.base();
          continue;
        }
        const leftMs = Number(value);
        // In a queue: when the holder's time is over, if next; otherwise often enough not to lose the place.
        if (fair) return leftMs >= 0 ? Math.min(leftMs + 1, ttlMs / beatsPerTtl) : ttlMs / beatsPerTtl;
        return leftMs >= 0 ? Math.min(byChance, leftMs + 1 + random.next() * firstPauseMs) : byChance;
      }
    } catch (error) {
      // It may have been done: then the token's time runs out by itself, or the next attempt of a queue finds it.
      if (!patient || !isCarillonError(error, "COORDINATION_UNREACHABLE")) throw error;
      return connection.retryMs();
    }
  }

  async #leaveQueue(token: string): Promise<void> {
    const [holder, , queue, deadlines] = this.#keys;
    try {
      await this.#place.connection.run(release, [holder, queue, deadlines], [token, this.#place.channel]);
    } catch (error) {
      if (!isCarillonError(error)) throw error; // its place in the queue lapses by itself
    }
  }
}

export class HeldRedisLock {
  readonly name: string;
  /** Above that of every earlier holder. */
  readonly fence: bigint;
  readonly #place: Place;
  readonly #keys: readonly [holder: string, fence: string, queue: string, deadlines: string];
  readonly #token: string;
  readonly #ttlMs: number;
  readonly #end = new AbortController();
  #heldUntil: number;
  #cancelWatch: () => void = () => undefined;

  /** @param began when the request that took it was sent */
  constructor(
    place: Place,
    keys: readonly [string, string, string, string],
    name: string,
    token: string,
    fence: string,
    ttlMs: number,
    began: number,
  ) {
    this.#place = place;
    this.#keys = keys;
    this.name = name;
    this.fence = BigInt(fence);
    this.#token = token;
    this.#ttlMs = ttlMs;
    this.#heldUntil = this.#trustFrom(began);
    this.#watch();
    void this.#beat();
  }

  /** For sure, at this moment. */
  get held(): boolean {
    return !this.#end.signal.aborted && this.#place.clock.monotonic() < this.#heldUntil;
  }

  /** Aborts when it is no longer held for sure, or was released. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** @returns whether it was held until now. Never rejects: what cannot be told to Redis lapses there by itself. */
  async release(): Promise<boolean> {
    const wasHeld = this.held;
    this.#finish();
    const [holder, , queue, deadlines] = this.#keys;
    try {
      const [keys, args] = [
        [holder, queue, deadlines],
        [this.#token, this.#place.channel],
      ];
      return (await this.#place.connection.run(release, keys, args)) === 1 && wasHeld;
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      return wasHeld;
    }
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
        const renewed = await connection.run(renew, [this.#keys[0]], [this.#token, this.#ttlMs]);
        // An answer that comes after the belief ended brings nothing back: whoever looked at `held` has seen the end.
        if (renewed !== 1 || !this.held) return this.#finish();
        this.#heldUntil = this.#trustFrom(began);
        waitMs = usual;
      } catch (error) {
        if (!isCarillonError(error)) return this.#finish();
        waitMs = connection.retryMs(); // belief runs out by itself
      }
    }
  }

  #watch(): void {
    const { clock } = this.#place;
    this.#cancelWatch = clock.after(this.#heldUntil - clock.monotonic(), () => (this.held ? this.#watch() : this.#finish()));
  }

  #finish(): void {
    this.#heldUntil = 0;
    this.#cancelWatch();
    this.#end.abort();
  }
}
