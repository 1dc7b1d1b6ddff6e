import { timingSafeEqual } from "node:crypto";
import { narrowed, type Principal } from "../access.ts";
import type { AccessStore, Credential } from "../access-store.ts";
import type { Clock } from "../clock.ts";
import { CarillonError } from "../errors.ts";
import { hashOfSecret, parseToken } from "../worker-key.ts";

/** What was changed at another server is known here after this. */
const freshMs = 2_000;
const rememberedMax = 10_000;

interface Known {
  credential: Credential | null;
  readMono: number;
}

/** Who a request comes from, by its token or its sign-in. */
export class Principals {
  readonly #store: AccessStore;
  readonly #clock: Clock;
  readonly #nowMs: () => number;
  readonly #known = new Map<string, Known>();

  constructor(store: AccessStore, clock: Clock, nowMs: () => number) {
    this.#store = store;
    this.#clock = clock;
    this.#nowMs = nowMs;
  }

  /** @throws SIGN_IN_NEEDED */
  async ofToken(text: string): Promise<{ who: Principal; expiresMs: number }> {
    const given = parseToken(text);
    if (!given) throw needed("that is no token");
    const hash = hashOfSecret(given.secret);
    const credential = await this.#read(`${given.keyId} ${hash.toString("latin1")}`, async () => {
      const found = await this.#store.tokenOf(given.keyId);
      return found && timingSafeEqual(found.hash, hash) ? found : null;
    });
    return this.#judge(credential, "the token");
  }

  /** @param secret of the cookie @throws SIGN_IN_NEEDED */
  async ofSignIn(secret: string): Promise<{ who: Principal; expiresMs: number }> {
    const hash = hashOfSecret(secret);
    const credential = await this.#read(hash.toString("latin1"), () => this.#store.signInOf(hash));
    return this.#judge(credential, "the sign-in");
  }

  /** Something changed here: what is remembered may be wrong. */
  forget(): void {
    this.#known.clear();
  }

  #judge(credential: Credential | null, what: string): { who: Principal; expiresMs: number } {
    if (!credential) throw needed(`${what} is not known`);
    const { user, expiresMs, token } = credential;
    if (user.disabledMs !== null) throw needed(`${what}'s user is locked out`);
    if (token && token.revokedMs !== null) throw needed(`${what} was revoked`);
    if (expiresMs <= this.#nowMs()) throw needed(`${what} has expired`);
    const { role, grants } = token ? narrowed(user, token) : user;
    const who: Principal = {
      ...{ kind: token ? ("token" as const) : ("user" as const), userId: user.userId, user: user.name },
      ...{ token: token?.name ?? null, role, grants },
      ...{ namespaces: token?.namespaces ?? null, scopes: token?.scopes ?? null },
    };
    return { who, expiresMs };
  }

  async #read(key: string, read: () => Promise<Credential | null>): Promise<Credential | null> {
    const known = this.#known.get(key);
    const now = this.#clock.monotonic();
    if (known && now - known.readMono < freshMs) return known.credential;
    const credential = await read();
    if (this.#known.size >= rememberedMax) this.#known.clear();
    // What is not there is not remembered: there is no end of that.
    if (credential) this.#known.set(key, { credential, readMono: now });
    return credential;
  }
}

export const needed = (what: string): CarillonError =>
  new CarillonError("SIGN_IN_NEEDED", what, { hint: "Send Authorization: Bearer TOKEN, or sign in." });
