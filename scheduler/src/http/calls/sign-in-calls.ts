import { type Principal, signInUnknown } from "../../access/access.ts";
import type { User } from "../../access/access-store.ts";
import { hashPassword, isOldHash, isPassword, type PasswordCheck, passwordWeak } from "../../access/password.ts";
import { hashOfSecret, makeSecret } from "../../access/worker-key.ts";
import { iso } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { ProviderSettings } from "../../settings/provider.ts";
import type { SignInSettings } from "../../settings/settings.ts";
import type { Store } from "../../store/store.ts";
import type { Call, Some } from "../call.ts";
import { knownBrowser, makeKnownBrowser } from "../sign-in/known-browser.ts";
import type { Principals } from "../sign-in/principals.ts";
import type { SecondFactors } from "../sign-in/second-factors.ts";
import type { SecurityLog } from "../sign-in/security-log.ts";
import type { Guesser, Throttle } from "../sign-in/throttle.ts";
import { changeOf } from "./changes.ts";
import { numberCursor, pageOf } from "./pages.ts";
import { asSignIn, grantsOf, ownHash } from "./user-calls.ts";

/** The path at which a browser begins to sign in with the identity provider. */
export const providerPath = "/v1/sign-in/provider";

const asMe = (
  { user, token, role, grants, scopes, temporary, provided }: Principal,
  expiresMs: number | null,
  factorNeeded: boolean,
) => ({
  user,
  token,
  role,
  grants: grantsOf({ role, grants }),
  scopes: scopes && [...scopes],
  expires: iso(expiresMs),
  temporary,
  provided,
  factorNeeded,
});

export const signedIn = ({ who }: Call): Principal => {
  if (!who) throw new Error("a route that needs somebody was called by nobody");
  return who;
};

/**
 * Checks that the sign-in is recent. A sign-in that began earlier must not end the user's other sign-ins, because the browser may be
 * unattended or its cookie stolen. Does not apply to tokens.
 * @throws SIGN_IN_OLD if the sign-in is older than `limits.freshSignInMs`
 */
function checkFresh({ begunMs, nowMs }: Call): void {
  if (begunMs === null || nowMs - begunMs <= limits.freshSignInMs) return;
  throw new CarillonError("SIGN_IN_OLD", "this sign-in began more than 10 minutes ago", {
    hint: "Sign in again.",
  });
}

export interface SignInOptions {
  store: Store;
  principals: Principals;
  /** Checks a password. */
  judged: Judge;
  factors: SecondFactors;
  provider: ProviderSettings | null;
  signIns: SignInSettings;
  security: SecurityLog;
  checkPassword: PasswordCheck;
}

/** Checks a user's name and password. @throws SIGN_IN_REFUSED, TOO_MANY_ATTEMPTS */
export type Judge = (name: string, password: string, from: Guesser) => Promise<User & { hash: string | null }>;

const refused = () =>
  new CarillonError("SIGN_IN_REFUSED", "the name or the password is wrong", { hint: "Try again, or ask an admin." });

/**
 * Returns the function that checks passwords.
 * @param throttle delays clients that have sent wrong passwords
 * @param security logs each wrong password
 */
export function passwordJudge({ access }: Pick<Store, "access">, throttle: Throttle, security: SecurityLog): Judge {
  return async (name, password, from) => {
    let user: Awaited<ReturnType<typeof access.userByName>> = null;
    const right = await throttle.attempt(name, from, async () => {
      user = await access.userByName(name);
      const found = user as (User & { hash: string | null }) | null;
      if (!(await isPassword(password, found?.hash ?? null)) || found?.disabledMs !== null) return false;
      if (found.hash !== null && isOldHash(found.hash)) {
        const hash = await hashPassword(password);
        await access.rehash(found.userId, found.hash, hash);
        user = { ...found, hash };
      }
      return true;
    });
    if (right && user) return user;
    // The name is logged only if it belongs to a user: an unknown name may be a password typed into the wrong field.
    const { name: known } = (user as User | null) ?? {};
    security.refused("SIGN_IN_REFUSED", { address: from.address, ...(known === undefined ? {} : { user: known }) });
    throw refused();
  };
}

export function signInCalls({
  store: { access },
  principals,
  judged,
  factors,
  provider,
  signIns: { lastsMs, idleMs },
  security,
  checkPassword,
}: SignInOptions): Some<
  "howToSignIn" | "signIn" | "signOut" | "getMe" | "listSignIns" | "endSignIn" | "endOtherSignIns" | "changePassword"
> {
  /**
   * Returns the browser's id if this browser has signed in as this user before. The store is read only if the browser sends a proof, so
   * that other clients cause no read before the throttle.
   */
  const browserOf = async (name: string, { browser: { present } }: Call): Promise<string | null> =>
    present && knownBrowser(present, name, (await access.userByName(name))?.hash ?? null);
  const changed = <T>(result: T): T => principals.changed(result);

  return {
    howToSignIn: async (_, call) => ({
      provider: provider && { label: provider.label, path: providerPath },
      cookie: call.cookie.present !== null,
    }),

    async signIn({ name, password, code = "" }, call) {
      const { address, agent } = call;
      const proven = await browserOf(name, call);
      const user = await judged(name, password, { address, proven });
      const change = { author: name, reason: "signed in", nowMs: call.nowMs };
      const secondFactor = await factors.judge(user, { code, address }, change);
      const secret = makeSecret();
      const expiresMs = call.nowMs + lastsMs;
      // Checking the password takes some time. If the password was changed meanwhile, the sign-in must fail.
      const since = user.hash === null ? {} : { password: user.hash };
      const given = {
        userId: user.userId,
        hash: hashOfSecret(secret),
        expiresMs,
        secondFactor,
        address,
        agent,
        ...since,
      };
      if (!(await access.signIn(given, call.nowMs))) {
        security.refused("SIGN_IN_REFUSED", { address, user: name });
        throw refused();
      }
      // The browser's previous sign-in ends, because it would stay valid although the browser no longer uses it.
      const { present } = call.cookie;
      if (present !== null) changed(await access.signOut(hashOfSecret(present)));
      call.cookie.set(secret, lastsMs);
      if (proven === null && user.hash !== null) call.browser.set(makeKnownBrowser(name, user.hash));
      security.signedIn("password", { user: name, address });
      const who: Principal = {
        kind: "user",
        userId: user.userId,
        user: name,
        token: null,
        role: user.role,
        grants: user.grants,
        namespaces: null,
        scopes: null,
        temporary: user.temporary,
        provided: user.provided,
      };
      const factorNeeded = factors.isLackedBy({ who, isProven: secondFactor, cookie: secret });
      return asMe(who, Math.floor(Math.min(expiresMs, call.nowMs + idleMs)), factorNeeded);
    },

    async signOut(_, call) {
      const { present } = call.cookie;
      if (present !== null) await access.signOut(hashOfSecret(present));
      call.cookie.set(null, 0);
      return changed(undefined);
    },

    getMe: async (_, call) => asMe(signedIn(call), call.expiresMs, call.factorNeeded),

    async listSignIns({ cursor, limit }, call) {
      const own = ownHash(call);
      const place = { beforeId: numberCursor(cursor), limit: limit + 1 };
      const rows = await access.signIns(signedIn(call).userId, place, idleMs, call.nowMs);
      return pageOf(rows, limit, asSignIn(own), ({ signInId }) => [signInId]);
    },

    async endSignIn({ signIn }, call) {
      const who = signedIn(call);
      checkFresh(call);
      const change = changeOf(call, "by the user");
      if ((await access.endSignIns({ userId: who.userId, name: who.user }, { signInId: signIn }, change)) === 0)
        throw signInUnknown("you have", signIn);
      return changed(undefined);
    },

    async endOtherSignIns(_, call) {
      const { userId, user: name } = signedIn(call);
      checkFresh(call);
      const which = { keeping: ownHash(call) };
      return changed({ ended: await access.endSignIns({ userId, name }, which, changeOf(call, "by the user")) });
    },

    async changePassword({ present, next }, call) {
      const { user } = signedIn(call);
      // `proven`: wrong passwords of other clients do not delay a signed-in user; only those that this user sends do.
      const { temporary } = await judged(user, present, { address: call.address, proven: "signed in" });
      if (temporary && next === present) throw passwordWeak("is the one that was handed over");
      await checkPassword(user, next);
      const keeping = call.cookie.present === null ? {} : { keeping: hashOfSecret(call.cookie.present) };
      await access.changeUser(user, { hash: await hashPassword(next), ...keeping }, changeOf(call, "by the user"));
      return changed(undefined);
    },
  };
}
