import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { networkOf } from "./failed-attempts.ts";

/** Of one account from one address, browser or sign-in; of one address for any account. */
const free = { pair: 5, address: 20 };
const firstWaitMs = 1_000;
const longestWaitMs = 15 * 60_000;
/** After so long without a failure it is forgotten. */
const forgottenMs = 60 * 60_000;
const rememberedMax = 10_000;
/** One password is hashed at a time: it takes a core for 400 ms, which runs must not wait for, and 128 MiB. So many wait in each line. */
const lineMax = 8;

/** Where a guess comes from. */
export interface Guesser {
  address: string;
  /** A browser or a sign-in that has shown the account's password before; null: none. */
  proven: string | null;
}

interface Failures {
  count: number;
  /** Until then nobody of this kind is heard. */
  untilMono: number;
  lastMono: number;
}

/**
 * Slows those who guess passwords. Few failures are free, then each doubles the wait, for an account from one address soon, for an
 * address later; never for an account as a whole, or strangers could keep its owner out. Who has shown the password before, by a
 * browser, a sign-in or from the same address, is judged before strangers; a browser or a sign-in is slowed by its own failures
 * alone. It is this server's own memory: of N servers together a guesser has N times as many tries.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #failures = new Map<string, Failures>();
  /** Pairs of an address and an account that have shown the password; the one that did so longest ago makes room. */
  readonly #known = new Set<string>();
  #hashing = false;
  readonly #knownLine: (() => void)[] = [];
  readonly #strangers: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Lets `check` judge a password. @param check whether it was right @throws TOO_MANY_ATTEMPTS */
  async attempt(account: string, from: Guesser, check: () => Promise<boolean>): Promise<boolean> {
    const kinds = kindsOf(account, from);
    const pair = pairOf(account, from.address);
    this.#refuseSoon(kinds.map(([key]) => key));
    // Counted before it is known: as many at once as there may be are no way around it.
    for (const [key, most] of kinds) this.#count(key, most);
    const right = await this.#inTurn(from.proven !== null || this.#known.has(pair), check).catch((error: unknown) => {
      // Nobody judged it: what cannot be looked up, or waits in too long a line, was no guess.
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
    // The one that was counted longest ago makes room: a flood of made-up names forgets names, not the flooding address.
    this.#failures.delete(key);
    if (this.#failures.size >= rememberedMax) this.#failures.delete(this.#failures.keys().next().value as string);
    this.#failures.set(key, { count, untilMono: now + waitMs, lastMono: now });
  }

  /** It was no failure after all; and who knows the password has shown that the ones before were mistakes. */
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

  /** Strangers wait behind all who are known. */
  async #inTurn(known: boolean, check: () => Promise<boolean>): Promise<boolean> {
    if (this.#hashing) {
      const line = known ? this.#knownLine : this.#strangers;
      if (line.length >= lineMax) throw tooMany(firstWaitMs);
      // Who ends hands its place on: nobody comes between.
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
