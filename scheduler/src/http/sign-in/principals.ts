import { timingSafeEqual } from "node:crypto";
import { narrowed, type Principal } from "../../access/access.ts";
import type { AccessStore, Credential } from "../../access/access-store.ts";
import { hashOfSecret, parseToken } from "../../access/worker-key.ts";
import { type Clock, pause } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { Gathered } from "../calls/gathered.ts";
import { FailedAttempts, networkOf } from "./failed-attempts.ts";

/** What was changed at another server is known here after this; a stream looks as often again, so it ends within a second. */
const freshMs = 500;
const rememberedMax = 10_000;
const readsPerStatement = 100;
/** Strangers from where too many were wrong are looked up together, no oftener than this, and so many wait for it. */
const strangersEveryMs = 1_000;
const strangersMost = 500;
/** Uses of a sign-in are put down no oftener than this. */
const seenApartMs = 60_000;

interface Judged {
  who: Principal;
  expiresMs: number;
  /** Signed in by more than a password. */
  isProven: boolean;
}

interface Known {
  credential: Credential;
  readMono: number;
  /** Of a sign-in: when a use of it was put down last. */
  seenMono?: number;
}

/**
 * Who a request comes from, by its token or its sign-in. What is not known costs a read of the store until too many from the same
 * network were none; from then on strangers from there wait for their turn, a good one among them no longer than a second.
 */
export class Principals {
  readonly #clock: Clock;
  readonly #nowMs: () => number;
  readonly #failed: FailedAttempts;
  readonly #known = new Map<string, Known>();
  readonly #tokens: Gathered<number, (Credential & { hash: Buffer }) | null>;
  readonly #signIns: Gathered<Buffer, Credential | null>;
  readonly #seen: (hash: Buffer) => void;
  /** How often something changed here. */
  #changes = 0;
  #turn: Promise<void> | undefined;
  #inLine = 0;

  /** @param idleMs how long a sign-in lasts without a use */
  constructor(store: AccessStore, clock: Clock, nowMs: () => number, log: Log, idleMs: number) {
    this.#clock = clock;
    this.#nowMs = nowMs;
    this.#failed = new FailedAttempts(clock, log, "tokens and sign-ins");
    this.#tokens = new Gathered((tokenIds) => store.tokensOf(tokenIds), readsPerStatement);
    this.#signIns = new Gathered((hashes) => store.signInsOf(hashes, idleMs), readsPerStatement);
    const seen = (hash: Buffer) => store.signInsSeen([hash], nowMs(), seenApartMs);
    // One that is not put down makes a sign-in end sooner, by the time until its next use.
    this.#seen = (hash) =>
      void seen(hash).catch((error) => log.debug({ error: messageOf(error) }, "the use of a sign-in was not put down"));
  }

  /** @param address whom it comes from @throws SIGN_IN_NEEDED, TOO_MANY_ATTEMPTS */
  async ofToken(text: string, address: string): Promise<Judged> {
    const given = parseToken(text);
    // It costs nothing to say so, so it is not counted.
    if (!given) throw needed("that is no token");
    const hash = hashOfSecret(given.secret);
    const credential = await this.#read(`${given.keyId} ${hash.toString("latin1")}`, address, async () => {
      const found = await this.#tokens.ask(given.keyId);
      return found && timingSafeEqual(found.hash, hash) ? found : null;
    });
    const turnedAwayMs = credential ? 0 : this.#failed.turnedAwayMs(networkOf(address));
    if (turnedAwayMs > 0) throw tooMany(turnedAwayMs);
    return this.#judge(credential, "the token");
  }

  /**
   * @param secret of the cookie
   * @param uses its user asks for something; not: a stream that was begun looks whether it may go on
   * @throws SIGN_IN_NEEDED, TOO_MANY_ATTEMPTS
   */
  async ofSignIn(secret: string, address: string, uses: boolean): Promise<Judged> {
    const hash = hashOfSecret(secret);
    const key = hash.toString("latin1");
    // A browser whose sign-in has ended is told so however often it asks: that is how its page comes to ask for a password.
    const credential = await this.#read(key, address, () => this.#signIns.ask(hash));
    const judged = this.#judge(credential, "the sign-in");
    const known = this.#known.get(key);
    const mono = this.#clock.monotonic();
    if (uses && known && mono - (known.seenMono ?? Number.NEGATIVE_INFINITY) >= seenApartMs) {
      known.seenMono = mono;
      this.#seen(hash);
    }
    return judged;
  }

  /** Something changed here: what is remembered may be wrong. */
  forget(): void {
    this.#changes++;
    for (const known of this.#known.values()) known.readMono = Number.NEGATIVE_INFINITY;
  }

  /** The same, after a change that has this result. */
  changed<T>(result: T): T {
    this.forget();
    return result;
  }

  #judge(credential: Credential | null, what: string): Judged {
    if (!credential) throw needed(`${what} is not known`);
    const { user, expiresMs, isProven, token } = credential;
    if (user.disabledMs !== null) throw needed(`${what}'s user is locked out`);
    if (token && token.revokedMs !== null) throw needed(`${what} was revoked`);
    if (expiresMs <= this.#nowMs()) throw needed(`${what} has expired`);
    const { role, grants } = token ? narrowed(user, token) : user;
    const who: Principal = {
      kind: token ? ("token" as const) : ("user" as const),
      userId: user.userId,
      user: user.name,
      token: token?.name ?? null,
      role,
      grants,
      namespaces: token?.namespaces ?? null,
      scopes: token?.scopes ?? null,
      // A token was made by who had a password of their own, or by an admin.
      temporary: token === null && user.temporary,
      provided: user.provided,
    };
    return { who, expiresMs, isProven };
  }

  async #read(key: string, address: string, ask: () => Promise<Credential | null>): Promise<Credential | null> {
    const known = this.#known.get(key);
    if (known && this.#clock.monotonic() - known.readMono < freshMs) return known.credential;
    const network = networkOf(address);
    // Who was known here once has shown the secret: nobody's wrong guesses hold them up.
    if (!known && this.#failed.turnedAwayMs(network) > 0) await this.#inTurn();
    const [readMono, changes] = [this.#clock.monotonic(), this.#changes];
    const credential = await ask();
    if (credential) {
      if (this.#known.size >= rememberedMax && !known) this.#known.clear();
      // What was read before a change may come in behind it.
      const isFresh = changes === this.#changes;
      const seen = known?.seenMono === undefined ? {} : { seenMono: known.seenMono };
      this.#known.set(key, { credential, readMono: isFresh ? readMono : Number.NEGATIVE_INFINITY, ...seen });
      return credential;
    }
    // What is not there is not remembered: there is no end of that.
    this.#known.delete(key);
    this.#failed.failed(network);
    return null;
  }

  async #inTurn(): Promise<void> {
    if (this.#inLine >= strangersMost) throw tooMany(strangersEveryMs);
    this.#inLine++;
    try {
      this.#turn ??= pause(this.#clock, strangersEveryMs).finally(() => {
        this.#turn = undefined;
      });
      await this.#turn;
    } finally {
      this.#inLine--;
    }
  }
}

export const needed = (what: string): CarillonError =>
  new CarillonError("SIGN_IN_NEEDED", what, { hint: "Send Authorization: Bearer TOKEN, or sign in." });

const tooMany = (waitMs: number) =>
  new CarillonError("TOO_MANY_ATTEMPTS", "too many tokens or sign-ins from this address were wrong", {
    hint: "Look for a program there with a wrong token. One with a good token is let in.",
    retryAfterMs: waitMs,
  });
