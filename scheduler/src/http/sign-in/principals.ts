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
 * How long a credential is cached: a change on another server takes effect here after this time. A stream checks its credential at the same
 * interval, so it ends within a second.
 */
const freshMs = 500;
const rememberedMax = 10_000;
const readsPerStatement = 100;
/**
 * Unknown credentials from networks with too many failures are looked up together, at most once per `strangersEveryMs`; at most
 * `strangersMost` of these requests wait.
 */
const strangersEveryMs = 1_000;
const strangersMost = 500;
/** The least interval between two records of a sign-in's use. */
const seenApartMs = 60_000;

interface Judged {
  who: Principal;
  /** When the sign-in began; null: the credential is a token. */
  begunMs: number | null;
  expiresMs: number;
  /** True if the user signed in by more than a password. */
  isProven: boolean;
}

interface Known {
  credential: Credential;
  readMono: number;
  /** When a use of this sign-in was last recorded. */
  seenMono?: number;
}

/**
 * Finds a request's principal by its token or its sign-in. An unknown credential costs a read of the store. After too many failures from
 * one network, requests from there with an unknown credential wait for a shared read; a valid credential among them waits a second at most.
 */
export class Principals {
  readonly #clock: Clock;
  readonly #nowMs: () => number;
  readonly #failed: FailedAttempts;
  readonly #known = new Map<string, Known>();
  readonly #tokens: Gathered<number, (Credential & { hash: Buffer }) | null>;
  readonly #signIns: Gathered<Buffer, Credential | null>;
  readonly #seen: (hash: Buffer) => void;
  /** How many changes to users, sign-ins and tokens were made through this server. */
  #changes = 0;
  #turn: Promise<void> | undefined;
  #inLine = 0;

  /** @param idleMs how long a sign-in lasts without being used, in milliseconds */
  constructor(store: AccessStore, clock: Clock, nowMs: () => number, log: Log, idleMs: number) {
    this.#clock = clock;
    this.#nowMs = nowMs;
    this.#failed = new FailedAttempts(clock, log, "tokens and sign-ins");
    this.#tokens = new Gathered((tokenIds) => store.tokensOf(tokenIds), readsPerStatement);
    this.#signIns = new Gathered((hashes) => store.signInsOf(hashes, idleMs), readsPerStatement);
    const seen = (hash: Buffer) => store.signInsSeen([hash], nowMs(), seenApartMs);
    // If recording a use fails, the idle time of the sign-in continues from the last recorded use.
    this.#seen = (hash) =>
      void seen(hash).catch((error) => log.debug({ error: messageOf(error) }, "the use of a sign-in was not put down"));
  }

  /** @param address the client's address @throws SIGN_IN_NEEDED, TOO_MANY_ATTEMPTS */
  async ofToken(text: string, address: string): Promise<Judged> {
    const given = parseToken(text);
    // A malformed token costs no read of the store, so it is not counted as a failure.
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
   * @param secret the cookie's secret
   * @param uses true if the user makes a request; false if a running stream checks whether it may go on
   * @throws SIGN_IN_NEEDED, TOO_MANY_ATTEMPTS
   */
  async ofSignIn(secret: string, address: string, uses: boolean): Promise<Judged> {
    const hash = hashOfSecret(secret);
    const key = hash.toString("latin1");
    // A browser whose sign-in has ended always receives SIGN_IN_NEEDED, however often it asks: its page needs that error to show the
    // sign-in form.
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

  /** Marks all cached credentials as stale. Called after a change on this server. */
  forget(): void {
    this.#changes++;
    for (const known of this.#known.values()) known.readMono = Number.NEGATIVE_INFINITY;
  }

  /** As `forget`, but passes on the result of the change. */
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
      // A token is exempt from the temporary-password rule: its maker had a permanent password, or is an admin.
      temporary: token === null && user.temporary,
      provided: user.provided,
    };
    return { who, begunMs, expiresMs, isProven };
  }

  async #read(key: string, address: string, ask: () => Promise<Credential | null>): Promise<Credential | null> {
    const known = this.#known.get(key);
    if (known && this.#clock.monotonic() - known.readMono < freshMs) return known.credential;
    const network = networkOf(address);
    // A cached credential was valid before, so failures by other clients of its network do not delay it.
    if (!known && this.#failed.turnedAwayMs(network) > 0) await this.#inTurn();
    const [readMono, changes] = [this.#clock.monotonic(), this.#changes];
    const credential = await ask();
    if (credential) {
      if (this.#known.size >= rememberedMax && !known) this.#known.clear();
      // A read that began before a change may finish after it.
      const isFresh = changes === this.#changes;
      const seen = known?.seenMono === undefined ? {} : { seenMono: known.seenMono };
      this.#known.set(key, { credential, readMono: isFresh ? readMono : Number.NEGATIVE_INFINITY, ...seen });
      return credential;
    }
    // Unknown credentials are not cached: their number is unbounded.
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
