import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import * as oidc from "openid-client";
import type { AccessStore } from "../../access/access-store.ts";
import { hashOfSecret, makeSecret } from "../../access/worker-key.ts";
import { statusOf } from "../../api/problem-status.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { Log } from "../../base/log.ts";
import { isThisMachine, type ProviderSettings, rightsOf, verifiedOnly } from "../../settings/provider.ts";
import { checkName } from "../../task/names.ts";
import { providerPath } from "../calls/sign-in-calls.ts";
import { agentOf, type CookiePlace, cookieName, cookieText, readCookie, readCookieOf } from "../guard.ts";
import { FailedAttempts, networkOf } from "./failed-attempts.ts";
import type { SecurityLog } from "./security-log.ts";

/** The path, after the base path, to which the provider redirects browsers; its URL must be registered with the provider. */
const returnPath = "/v1/sign-in/provided";
/** The page, after the base path, to which a browser is redirected after the sign-in, whichever page it requested before. */
const homePath = "/";
/** The time limit for one sign-in attempt, in ms: the user may have to find a second factor. */
const attemptMs = 10 * 60_000;
const answerMs = 10_000;
/** How long the provider's metadata, such as the URL of its keys, is cached, in ms. */
const discoveredMs = 60 * 60_000;

/** Matches a subject as OpenID Connect defines it. Other subjects are refused: the store accepts no longer subject and none with a NUL. */
const subjects = /^[\x20-\x7e]{1,255}$/;

type Claims = Record<string, Json | undefined> & { iss: string; sub: string };

/**
 * Signs in users by an OpenID Connect provider. A user whom the provider has authenticated and the rules admit gets the same kind of
 * sign-in as with a password. An attempt begins when the browser is redirected to the provider; its `state` is kept in a cookie of the
 * browser. When the browser returns with the same `state`, the user is signed in or refused; with another `state`, or after 10 minutes, the
 * return is refused. A second return is refused too, because the cookie is deleted and the provider accepts a code only once. The server
 * stores no state of an attempt, so another node may handle the return. The attempt's cookie is SameSite=Lax, because the redirect comes
 * from the provider's site; the sign-in's cookie is Strict.
 */
export class Provider {
  readonly #settings: ProviderSettings;
  readonly #access: AccessStore;
  readonly #clock: Clock;
  readonly #nowMs: () => number;
  readonly #log: Log;
  readonly #failed: FailedAttempts;
  readonly #security: SecurityLog;
  readonly #place: CookiePlace;
  /** The URL to which the provider redirects browsers. */
  readonly #returnUrl: string;
  readonly #signInMs: number;
  readonly #onChanged: () => void;
  #discovered: { config: Promise<oidc.Configuration>; untilMono: number } | undefined;

  constructor(
    settings: ProviderSettings,
    {
      access,
      clock,
      nowMs,
      log,
      security,
      place,
      signInMs,
      onChanged,
    }: {
      access: AccessStore;
      clock: Clock;
      nowMs: () => number;
      log: Log;
      security: SecurityLog;
      place: CookiePlace;
      /** How long a sign-in is valid, in ms. */
      signInMs: number;
      /** Called when a user's rights may have changed; clears cached credentials. */
      onChanged: () => void;
    },
  ) {
    this.#settings = settings;
    this.#access = access;
    this.#clock = clock;
    this.#nowMs = nowMs;
    this.#log = log;
    this.#security = security;
    this.#place = place;
    this.#returnUrl = `${settings.url}${place.basePath}${returnPath}`;
    this.#signInMs = signInMs;
    this.#onChanged = onChanged;
    this.#failed = new FailedAttempts(clock, log, "returns of the sign-in provider");
  }

  register(app: FastifyInstance): void {
    const config = { policy: "anyone" as const, touches: "nothing" as const };
    const home = `${this.#place.basePath}${homePath}`;
    app.get(providerPath, { config }, (request, reply) => led(request, reply, home, () => this.#begin(request, reply)));
    app.get(returnPath, { config }, (request, reply) => led(request, reply, home, () => this.#return(request, reply)));
  }

  async #begin(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const config = await this.#config();
    const [state, nonce, verifier] = [makeSecret(), makeSecret(), oidc.randomPKCECodeVerifier()];
    const to = oidc.buildAuthorizationUrl(config, {
      redirect_uri: this.#returnUrl,
      scope: this.#settings.scopes.join(" "),
      state,
      nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    // The redirect from the provider is cross-site, so the browser will not send the `SameSite=Strict` cookie of its current sign-in. The
    // attempt's cookie therefore contains that sign-in's hash, so that the new sign-in can replace it.
    const present = readCookie(request, cookieName(this.#place));
    const former = present === null ? [] : [hashOfSecret(present).toString("base64url")];
    this.#setAttempt(reply, [state, nonce, verifier, ...former].join("."));
    return reply.redirect(to.href, 302);
  }

  /** Handles the browser's return from the provider. @throws SIGN_IN_REFUSED, PROVIDER_UNREACHABLE, TOO_MANY_ATTEMPTS, USER_NAME_TAKEN */
  async #return(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const network = networkOf(request.ip);
    const turnedAwayMs = this.#failed.turnedAwayMs(network);
    if (turnedAwayMs > 0)
      throw new CarillonError("TOO_MANY_ATTEMPTS", "too many sign-ins from this address came to nothing", {
        hint: `Wait ${Math.ceil(turnedAwayMs / 1_000)} s.`,
        retryAfterMs: turnedAwayMs,
      });
    try {
      const attempt = readCookieOf(request, this.#attemptName, /^[\w-]{43}(?:\.[\w-]{43}){2,3}$/)?.split(".") ?? [];
      const claims = await this.#claims(request, attempt);
      this.#setAttempt(reply, null);
      await this.#signIn(claims, request, reply);
      const [, , , former] = attempt;
      if (former !== undefined) await this.#access.signOut(Buffer.from(former, "base64url"));
      return reply.redirect(`${this.#place.basePath}${homePath}`, 303);
    } catch (error) {
      this.#setAttempt(reply, null);
      // A failure of the provider or the store does not count against the network; otherwise an outage could lock out a whole office even
      // after it has ended.
      if (!(error instanceof CarillonError) || statusOf(error.code) < 500) this.#failed.failed(network);
      if (isCarillonError(error, "SIGN_IN_REFUSED"))
        this.#security.refused(error.code, { address: request.ip, route: `GET ${returnPath}` });
      throw error;
    }
  }

  /** Exchanges the code in the request for the provider's claims about the user. */
  async #claims(request: FastifyRequest, [state, nonce = "", verifier = ""]: readonly string[]): Promise<Claims> {
    if (state === undefined) throw refused("attempt", "this browser began no sign-in here, or too long ago");
    // The request's URL is not parsed as a whole, because its Host header may be anything, even invalid.
    const searchParams = new URLSearchParams(request.url.split("?").slice(1).join("?"));
    // Checked first, so that a forged return causes no request to the provider.
    if (searchParams.getAll("state").join() !== state)
      throw refused("answer", "the answer is not to what this browser asked");
    if (searchParams.has("error")) throw refused("nobody", "the provider let nobody in");
    const config = await this.#config();
    try {
      // Uses the configured URL that was sent to the provider, because this request's Host header may be anything.
      const url = new URL(`${this.#returnUrl}?${searchParams}`);
      const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true };
      const tokens = await oidc.authorizationCodeGrant(config, url, checks);
      const own = tokens.claims() as oidc.IDToken;
      const more = config.serverMetadata().userinfo_endpoint
        ? await oidc.fetchUserInfo(config, tokens.access_token, own.sub)
        : {};
      // Each source is filtered separately, because `email_verified` in one source does not apply to the address in the other.
      const [some, all] = [more, own].map((each) => verifiedOnly(each as Record<string, Json | undefined>));
      return { ...some, ...all } as unknown as Claims;
    } catch (error) {
      this.#log.warn({ error: messageOf(error) }, "a sign-in by the provider came to nothing");
      if (isAway(error)) throw this.#unreachable("does not answer", error);
      throw refused("invalid", "the provider's answer does not hold");
    }
  }

  async #signIn(claims: Claims, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const rights = rightsOf(this.#settings, claims);
    const name = claims[this.#settings.name];
    if (rights === null) throw refused("rule", "no rule says what whom the provider sends may do here");
    if (typeof name !== "string") throw refused("name", `the provider does not tell ${this.#settings.name}`);
    checkName("a user's name", name, 100);
    const nowMs = this.#nowMs();
    const { iss: issuer, sub: subject } = claims;
    if (!subjects.test(subject)) throw refused("invalid", "the provider has no proper number for whom it sends");
    const change = { author: `the provider ${this.#settings.label}`, reason: "signed in", nowMs };
    const user = await this.#access.providedUser({ issuer, subject, name, ...rights }, change);
    this.#onChanged();
    if (user.disabledMs !== null) throw refused("locked", "the user is locked out");
    const secret = makeSecret();
    const given = { userId: user.userId, hash: hashOfSecret(secret), expiresMs: nowMs + this.#signInMs };
    if (!(await this.#access.signIn({ ...given, address: request.ip, agent: agentOf(request) }, nowMs)))
      throw refused("locked", "the user is locked out");
    reply.header("set-cookie", cookieText(cookieName(this.#place), secret, this.#signInMs, this.#place));
    this.#security.signedIn("provider", { user: name, address: request.ip });
  }

  get #attemptName(): string {
    return `${cookieName(this.#place)}-attempt`;
  }

  #setAttempt(reply: FastifyReply, value: string | null): void {
    reply.header("set-cookie", cookieText(this.#attemptName, value, attemptMs, this.#place, "Lax"));
  }

  async #config(): Promise<oidc.Configuration> {
    const now = this.#clock.monotonic();
    if (!this.#discovered || this.#discovered.untilMono <= now)
      this.#discovered = { config: this.#discover(), untilMono: now + discoveredMs };
    const { config } = this.#discovered;
    try {
      return await config;
    } catch (error) {
      if (this.#discovered?.config === config) this.#discovered = undefined;
      throw this.#unreachable("does not say how to sign in", error);
    }
  }

  #unreachable(what: string, cause: unknown): CarillonError {
    return new CarillonError("PROVIDER_UNREACHABLE", `${this.#settings.label} ${what}`, {
      cause,
      hint: "Try again, or sign in with a password. Whether the provider can be reached from this server, its log says.",
    });
  }

  async #discover(): Promise<oidc.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const url = new URL(issuer);
    // Enables the check of signatures, which the library omits by default for a token that it has fetched from the provider over TLS.
    const execute = [oidc.enableNonRepudiationChecks];
    if (isThisMachine(url) && url.protocol === "http:") execute.push(oidc.allowInsecureRequests);
    try {
      return await oidc.discovery(url, clientId, clientSecret, undefined, { execute, timeout: answerMs / 1_000 });
    } catch (error) {
      this.#log.warn({ error: messageOf(error), issuer }, "the sign-in provider does not answer");
      throw error;
    }
  }
}

/** True if the provider did not answer or had an error itself, so that the user's input is not the cause. */
function isAway(error: unknown): boolean {
  // A failed fetch throws a TypeError with a cause; a wrong call throws a TypeError without a cause.
  if (error instanceof TypeError) return error.cause !== undefined;
  const { code, status = 0, cause } = error as { code?: string; status?: number; cause?: unknown };
  return code === "OAUTH_TIMEOUT" || (cause instanceof Response ? cause.status : status) >= 500;
}

/**
 * The reason for a refusal, for which the console has a text. The URL contains only this code and no free text, because anyone can write a
 * URL.
 */
type Why = "attempt" | "answer" | "nobody" | "invalid" | "rule" | "name" | "locked";

class Refused extends CarillonError {
  readonly why: Why;

  constructor(why: Why, what: string) {
    super("SIGN_IN_REFUSED", what, { hint: "Begin again at the sign-in page, or ask an admin." });
    this.why = why;
  }
}

const refused = (why: Why, what: string) => new Refused(why, what);

/**
 * If `go` fails with a Carillon error, redirects a browser to the sign-in page, which shows the reason; other clients get the
 * error.
 */
async function led(
  request: FastifyRequest,
  reply: FastifyReply,
  home: string,
  go: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await go();
  } catch (error) {
    if (!(error instanceof CarillonError) || !/\btext\/html\b/.test(request.headers.accept ?? "")) throw error;
    const why = error instanceof Refused ? `&why=${error.why}` : "";
    return reply.redirect(`${home}?refused=${error.code}${why}`, 303);
  }
}
