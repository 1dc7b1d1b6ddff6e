import type { Clock } from "../clock.ts";
import { CarillonError } from "../errors.ts";
import { networkOf } from "./failed-attempts.ts";

/** Of one account from one address; of one account from anywhere; of one address for any account. */
const free = { pair: 5, account: 50, address: 20 };
const firstWaitMs = 1_000;
const longestWaitMs = 15 * 60_000;
/** After so long without a failure it is forgotten. */
const forgottenMs = 60 * 60_000;
const rememberedMax = 10_000;
/** Password hashes at once, and in line for one: each takes a core for 100 ms, which runs must not wait for. */
const hashesAtOnce = 1;
const lineMax = 8;

interface Failures {
  count: number;
  /** Until then nobody of this kind is heard. */
  untilMono: number;
  lastMono: number;
}

/**
 * Slows those who guess passwords. Few failures are free, then each doubles the wait, for an account from one address soon, for
 * an account as a whole late: a stranger should not be able to keep its owner out. It is this server's own memory: of N servers
 * together a guesser has N times as many tries.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #failures = new Map<string, Failures>();
  #hashing = 0;
  #line: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Lets `check` judge a password. @param check whether it was right @throws TOO_MANY_ATTEMPTS */
  async attempt(account: string, address: string, check: () => Promise<boolean>): Promise<boolean> {
    const kinds = kindsOf(account, address);
    this.#refuseSoon(kinds.map(([key]) => key));
    // Counted before it is known: as many at once as there may be are no way around it.
    for (const [key, most] of kinds) this.#count(key, most);
    const right = await this.#inTurn(check).catch((error: unknown) => {
      // Nobody judged it: what cannot be looked up, or waits in too long a line, was no guess.
      this.#uncount(kinds.map(([key]) => key));
      throw error;
    });
    if (right) this.#forgive(kinds.map(([key]) => key));
    return right;
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

  async #inTurn(check: () => Promise<boolean>): Promise<boolean> {
    if (this.#hashing >= hashesAtOnce) {
      if (this.#line.length >= lineMax) throw tooMany(firstWaitMs);
      await new Promise<void>((resolve) => this.#line.push(resolve));
    }
    this.#hashing++;
    try {
      return await check();
    } finally {
      this.#hashing--;
      this.#line.shift()?.();
    }
  }
}

const kindsOf = (account: string, address: string): [key: string, free: number][] => [
  [`pair ${networkOf(address)} ${account}`, free.pair],
  [`account ${account}`, free.account],
  [`address ${networkOf(address)}`, free.address],
];

const tooMany = (waitMs: number) =>
  new CarillonError("TOO_MANY_ATTEMPTS", "too many attempts to sign in", {
    hint: `Wait ${Math.ceil(waitMs / 1_000)} s.`,
    retryAfterMs: waitMs,
  });
