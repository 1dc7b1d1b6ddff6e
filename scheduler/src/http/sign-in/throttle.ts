import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { networkOf } from "./failed-attempts.ts";

/**
 * The number of failures after which a client must wait. `pair`: for one account from one network, browser or sign-in; `address`: for any
 * account from one network.
 */
const free = { pair: 5, address: 20 };
const firstWaitMs = 1_000;
const longestWaitMs = 15 * 60_000;
/** A counter of failures is reset if this many ms have passed without another failure. */
const forgottenMs = 60 * 60_000;
const rememberedMax = 10_000;
/**
 * The maximum number of attempts in each of the two queues. One password is hashed at a time: a hash needs 128 MiB and much CPU time, and
 * two at once would delay runs.
 */
const lineMax = 8;

/** The client that sends a password. */
export interface Guesser {
  address: string;
  /** The id of a browser or sign-in with which the account's password was proved before; null if there is none. */
  proven: string | null;
}

interface Failures {
  count: number;
  /** Attempts with this key are refused until this time of the monotonic clock. */
  untilMono: number;
  lastMono: number;
}

/**
 * Slows down password guessing. After a few failures, each further failure doubles the wait: after `free.pair` failures for one account
 * from one network, and after `free.address` for all accounts from one network. An account as a whole is never slowed, because strangers
 * could then lock out its owner. Clients that have proved the password before (with the same browser, sign-in or network) are checked
 * before unknown ones, and a browser or sign-in is slowed only by its own failures. Each server counts separately, so with N servers an
 * attacker has N times as many attempts.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #failures = new Map<string, Failures>();
  /** Pairs of network and account with which a password was proved; if there are too many, the oldest pair is dropped. */
  readonly #known = new Set<string>();
  #hashing = false;
  readonly #knownLine: (() => void)[] = [];
  readonly #strangers: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Queues the attempt and calls `check` in its turn.
   * @param check resolves to true if the password is correct
   * @throws TOO_MANY_ATTEMPTS
   */
  async attempt(account: string, from: Guesser, check: () => Promise<boolean>): Promise<boolean> {
    const kinds = kindsOf(account, from);
    const pair = pairOf(account, from.address);
    this.#refuseSoon(kinds.map(([key]) => key));
    // The attempt is counted as a failure before it is checked, so that concurrent attempts do not bypass the limit.
    for (const [key, most] of kinds) this.#count(key, most);
    const right = await this.#inTurn(from.proven !== null || this.#known.has(pair), check).catch((error: unknown) => {
      // The password was not checked (the look-up failed or the queue was full), so the attempt does not count as a failure.
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
    // The key that was counted longest ago is dropped first. A flood of invented names thus drops other names, but not the network's
    // counter.
    this.#failures.delete(key);
    if (this.#failures.size >= rememberedMax) this.#failures.delete(this.#failures.keys().next().value as string);
    this.#failures.set(key, { count, untilMono: now + waitMs, lastMono: now });
  }

  /** Called after a correct password: this attempt is not a failure, and earlier failures of this client with the account are deleted. */
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

  /** Waits for the turn of the attempt: clients that have proved the password before precede all others. */
  async #inTurn(known: boolean, check: () => Promise<boolean>): Promise<boolean> {
    if (this.#hashing) {
      const line = known ? this.#knownLine : this.#strangers;
      if (line.length >= lineMax) throw tooMany(firstWaitMs);
      // The check that ends passes its turn directly to the next attempt in the queue, so that no later attempt overtakes it.
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
