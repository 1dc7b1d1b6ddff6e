import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { networkOf } from "./failed-attempts.ts";

/** How many failures are free: `pair` for one account from one address, browser or sign-in; `address` for any account from one address. */
const free = { pair: 5, address: 20 };
const firstWaitMs = 1_000;
const longestWaitMs = 15 * 60_000;
/** A record of failures is dropped after this span without a new one. */
const forgottenMs = 60 * 60_000;
const rememberedMax = 10_000;
/**
 * The most attempts that wait in each queue. One password is hashed at a time: a hash takes 128 MiB and occupies a core for 400 ms, which
 * must not delay runs.
 */
const lineMax = 8;

/** The source of a guess. */
export interface Guesser {
  address: string;
  /** An id of the browser or sign-in that has proved the account's password before; null: there is none. */
  proven: string | null;
}

interface Failures {
  count: number;
  /** Attempts under this key are refused until this time. */
  untilMono: number;
  lastMono: number;
}

/**
 * Slows down password guessing. A few failures are free, then each failure doubles the wait: soon for one account from one address, later
 * for an address. An account as a whole is never slowed, because then strangers could lock its owner out. Clients that have proved the
 * password before (by a browser, a sign-in, or from the same address) go before unknown ones; a browser or a sign-in is slowed only by its
 * own failures. Each server counts only its own failures: against N servers a guesser has N times as many tries.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #failures = new Map<string, Failures>();
  /** Pairs of an address and an account that have proved the password; the oldest pair is dropped first. */
  readonly #known = new Set<string>();
  #hashing = false;
  readonly #knownLine: (() => void)[] = [];
  readonly #strangers: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `check` when the client's turn comes. @param check resolves to true if the password is right @throws TOO_MANY_ATTEMPTS */
  async attempt(account: string, from: Guesser, check: () => Promise<boolean>): Promise<boolean> {
    const kinds = kindsOf(account, from);
    const pair = pairOf(account, from.address);
    this.#refuseSoon(kinds.map(([key]) => key));
    // Counted before the result is known, so that many attempts at once do not bypass the limit.
    for (const [key, most] of kinds) this.#count(key, most);
    const right = await this.#inTurn(from.proven !== null || this.#known.has(pair), check).catch((error: unknown) => {
      // The check did not complete (the look-up failed, or the queue was full), so the attempt is not counted as a guess.
      this.#uncount(kinds.map(([key]) => key));
      throw error;
    });
    if (!right) return false;
    this.#forgive(kinds.map(([key]) => key));
    this.#known.delete(pair);
    if (this.#known.size >= rememberedMax) this.#known.delete(this.#known.values().next().value as string);
    this.#known.add(pair);
    return true;
  }

  #refuseSoon(keys: string[]): void {
    const now = this.#clock.monotonic();
    const until = Math.max(...keys.map((key) => this.#failures.get(key)?.untilMono ?? 0));
    if (until > now) throw tooMany(until - now);
  }

  #count(key: string, most: number): void {
    const now = this.#clock.monotonic();
    const known = this.#failures.get(key);
    const before = known && now - known.lastMono < forgottenMs ? known.count : 0;
    const count = before + 1;
    const waitMs = count < most ? 0 : Math.min(firstWaitMs * 2 ** Math.min(count - most, 20), longestWaitMs);
    // The key counted longest ago is dropped first: a flood of made-up names displaces other names, not the flooding address.
    this.#failures.delete(key);
    if (this.#failures.size >= rememberedMax) this.#failures.delete(this.#failures.keys().next().value as string);
    this.#failures.set(key, { count, untilMono: now + waitMs, lastMono: now });
  }

  /** After a correct password: this attempt is not counted, and the pair's earlier failures are forgotten as mistakes. */
  #forgive([pair = "", ...others]: string[]): void {
    this.#failures.delete(pair);
    this.#uncount(others);
  }

  #uncount(keys: string[]): void {
    for (const key of keys) {
      const known = this.#failures.get(key);
      if (known) this.#failures.set(key, { ...known, count: known.count - 1, untilMono: 0 });
    }
  }

  /** Clients that have not proved the password before wait behind all that have. */
  async #inTurn(known: boolean, check: () => Promise<boolean>): Promise<boolean> {
    if (this.#hashing) {
      const line = known ? this.#knownLine : this.#strangers;
      if (line.length >= lineMax) throw tooMany(firstWaitMs);
      // The finished check hands its turn directly to the next attempt, so that no new attempt overtakes it.
      await new Promise<void>((resolve) => line.push(resolve));
    }
    this.#hashing = true;
    try {
      return await check();
    } finally {
      const next = this.#knownLine.shift() ?? this.#strangers.shift();
      if (next) next();
      else this.#hashing = false;
    }
  }
}

const pairOf = (account: string, address: string) => `pair ${networkOf(address)} ${account}`;

const kindsOf = (account: string, { address, proven }: Guesser): [key: string, free: number][] =>
  proven === null
    ? [
        [pairOf(account, address), free.pair],
        [`address ${networkOf(address)}`, free.address],
      ]
    : [[`proven ${proven} ${account}`, free.pair]];

const tooMany = (waitMs: number) =>
  new CarillonError("TOO_MANY_ATTEMPTS", "too many attempts to sign in", {
    hint: `Wait ${Math.ceil(waitMs / 1_000)} s.`,
    retryAfterMs: waitMs,
  });
