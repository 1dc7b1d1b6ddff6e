import { timingSafeEqual } from "node:crypto";
import { narrowed, type Principal } from "../../access/access.ts";
import type { AccessStore, Credential } from "../../access/access-store.ts";
import { hashOfSecret, parseToken } from "../../access/worker-key.ts";
import { type Clock, pause } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { Gathered } from "../calls/gathered.ts";
import { FailedAttempts, networkOf } from "./failed-attempts.ts";

/**
 * How long a credential is cached, in ms; after this time a change on another server takes effect here. A stream checks its credential at
 * the same interval, so it ends within about a second of a revocation.
 */
const freshMs = 500;
const rememberedMax = 10_000;
const readsPerStatement = 100;
/**
 * Requests with unknown credentials from networks with too many failures wait for the next turn, one every `strangersEveryMs`; at most
 * `strangersMost` of them wait.
 */
const strangersEveryMs = 1_000;
const strangersMost = 500;
/** The shortest interval in ms between two records of the use of a sign-in. */
const seenApartMs = 60_000;

interface Judged {
  who: Principal;
  /** When the sign-in began, in epoch ms; null if the credential is a token. */
  begunMs: number | null;
  expiresMs: number;
  /** True if the user signed in by more than a password. */
  isProven: boolean;
}

interface Known {
  credential: Credential;
  readMono: number;
  /** When the use of this sign-in was last recorded, by the monotonic clock. */
  seenMono?: number;
}

/**
 * Finds the principal of a request by its token or sign-in. A credential that is not cached costs a query of the store. After too many
 * failures from one network, requests from there with unknown credentials wait for a common query, so a valid new credential is delayed by
 * about a second at most, or refused if `strangersMost` requests wait already.
 */
export class Principals {
  readonly #clock: Clock;
  readonly #nowMs: () => number;
  readonly #failed: FailedAttempts;
  readonly #known = new Map<string, Known>();
  readonly #tokens: Gathered<number, (Credential & { hash: Buffer }) | null>;
  readonly #signIns: Gathered<Buffer, Credential | null>;
  readonly #seen: (hash: Buffer) => void;
  /** The number of changes to users, sign-ins and tokens made through this server. */
  #changes = 0;
  #turn: Promise<void> | undefined;
  #inLine = 0;

  /** @param idleMs how long a sign-in that is not used remains valid, in ms */
  constructor(store: AccessStore, clock: Clock, nowMs: () => number, log: Log, idleMs: number) {
    this.#clock = clock;
    this.#nowMs = nowMs;
    this.#failed = new FailedAttempts(clock, log, "tokens and sign-ins");
    this.#tokens = new Gathered((tokenIds) => store.tokensOf(tokenIds), readsPerStatement);
    this.#signIns = new Gathered((hashes) => store.signInsOf(hashes, idleMs), readsPerStatement);
    const seen = (hash: Buffer) => store.signInsSeen([hash], nowMs(), seenApartMs);
    // If a use could not be recorded, the idle time counts from the last recorded use.
    this.#seen = (hash) =>
      void seen(hash).catch((error) => log.debug({ error: messageOf(error) }, "the use of a sign-in was not put down"));
  }

  /** Authenticates a token. @param address the client's address @throws SIGN_IN_NEEDED, TOO_MANY_ATTEMPTS */
  async ofToken(text: string, address: string): Promise<Judged> {
    const given = parseToken(text);
    // A malformed token needs no query of the store, so it does not count as a failure.
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
   * Authenticates a sign-in.
   * @param secret the secret in the cookie
   * @param uses true for a user's request, which counts as use of the sign-in; false if an open stream only checks whether it may continue
   * @throws SIGN_IN_NEEDED, TOO_MANY_ATTEMPTS
   */
  async ofSignIn(secret: string, address: string, uses: boolean): Promise<Judged> {
    const hash = hashOfSecret(secret);
    const key = hash.toString("latin1");
    // An ended sign-in gives SIGN_IN_NEEDED even after many failures, because the console shows the sign-in form on that error.
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

  /** Marks all cached credentials as outdated; called after a change on this server. */
  forget(): void {
    this.#changes++;
    for (const known of this.#known.values()) known.readMono = Number.NEGATIVE_INFINITY;
  }

  /** Does the same as `forget`, and returns the result of the change. */
  changed<T>(result: T): T {
    this.forget();
    return result;
  }

  #judge(credential: Credential | null, what: string): Judged {
    if (!credential) throw needed(`${what} is not known`);
    const { user, begunMs, expiresMs, isProven, token } = credential;
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
      // A token is not subject to the rule about temporary passwords: it was created by a user with a permanent password or by an admin.
      temporary: token === null && user.temporary,
      provided: user.provided,
    };
    return { who, begunMs, expiresMs, isProven };
  }

  async #read(key: string, address: string, ask: () => Promise<Credential | null>): Promise<Credential | null> {
    const known = this.#known.get(key);
    if (known && this.#clock.monotonic() - known.readMono < freshMs) return known.credential;
    const network = networkOf(address);
    // A page whose sign-in has ended sends many reads with the same cookie. They count as one failure. Secrets are random, so an unknown
    // one does not become valid later, and its repetition costs no query.
    if (!known && this.#failed.hasFailed(network, key)) return null;
    // A cached credential has been valid before, so failures of other clients in the same network must not delay it.
    if (!known && this.#failed.turnedAwayMs(network) > 0) await this.#inTurn();
    const [readMono, changes] = [this.#clock.monotonic(), this.#changes];
    const credential = await ask();
    if (credential) {
      if (this.#known.size >= rememberedMax && !known) this.#known.clear();
      // If a change was made during the query, its result may be older than the change, so it is cached as outdated.
      const isFresh = changes === this.#changes;
      const seen = known?.seenMono === undefined ? {} : { seenMono: known.seenMono };
      this.#known.set(key, { credential, readMono: isFresh ? readMono : Number.NEGATIVE_INFINITY, ...seen });
      return credential;
    }
    // Unknown credentials are not cached beyond those that `#failed` counts, because there can be any number of them.
    this.#known.delete(key);
    this.#failed.failed(network, key);
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
