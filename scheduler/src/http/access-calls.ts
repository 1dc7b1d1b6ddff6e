import { type Grant, hasRole, highestRole, type Principal, roles } from "../access.ts";
import type { Token, User } from "../access-store.ts";
import type { accessRoutes } from "../contract-access.ts";
import { parseDuration } from "../duration.ts";
import { CarillonError } from "../errors.ts";
import { limits } from "../limits.ts";
import { checkNamespace } from "../namespace.ts";
import { checkPassword, hashPassword, isPassword } from "../password.ts";
import type { ProviderSettings } from "../provider-options.ts";
import { iso, isoTime } from "../run-object.ts";
import type { Store } from "../store.ts";
import { checkName } from "../task.ts";
import { hashOfSecret, keyText, makeSecret, tokenText } from "../worker-key.ts";
import type { WorkerKey } from "../worker-store.ts";
import type { Call, Some } from "./call.ts";
import { signInMs } from "./guard.ts";
import { nameCursor, numberCursor, pageOf } from "./pages.ts";
import type { Principals } from "./principals.ts";
import { changeOf } from "./task-calls.ts";
import type { Throttle } from "./throttle.ts";

const dayMs = 86_400_000;
/** Where a browser begins to sign in by the provider. */
export const providerPath = "/v1/sign-in/provider";
const tokenMs = 90 * dayMs;
const longestTokenMs = 366 * dayMs;

/** The role everywhere is told as a grant too. */
const grantsOf = ({ role, grants }: Pick<Principal, "role" | "grants">) => [
  ...(role === null ? [] : [{ namespace: "*", role }]),
  ...grants,
];

const asUser = ({ name, version, role, grants, createdMs, createdBy, disabledMs, provided }: User) => ({
  ...{ name, role, grants: grantsOf({ role, grants }), created: isoTime(createdMs), createdBy },
  ...{ disabled: iso(disabledMs), provided, version },
});
const asToken = ({ name, user, role, scopes, namespaces, createdMs, expiresMs, revokedMs }: Token) => ({
  ...{
    name,
    user,
    role,
    scopes,
    namespaces,
    created: isoTime(createdMs),
    expires: isoTime(expiresMs),
    revoked: iso(revokedMs),
  },
});
const asKey = ({ name, groups, createdMs, createdBy, revokedMs }: WorkerKey) => ({
  ...{ name, groups, created: isoTime(createdMs), by: createdBy, revoked: iso(revokedMs) },
});
const asMe = ({ user, token, role, grants, scopes }: Principal, expiresMs: number | null) => ({
  ...{ user, token, role, grants: grantsOf({ role, grants }), scopes: scopes && [...scopes], expires: iso(expiresMs) },
});

/** @throws OPTION_INVALID */
function checkedGrants(grants: Grant[]): Grant[] {
  for (const { namespace } of grants) checkNamespace(namespace);
  if (new Set(grants.map(({ namespace }) => namespace)).size < grants.length)
    throw new CarillonError("OPTION_INVALID", "two grants are of one namespace", { hint: "Give the higher one." });
  return grants;
}

const signedIn = ({ who }: Call): Principal => {
  if (!who) throw new Error("a route that needs somebody was called by nobody");
  return who;
};

export function accessCalls(
  store: Store,
  principals: Principals,
  throttle: Throttle,
  provider: ProviderSettings | null,
): Some<keyof typeof accessRoutes> {
  const { access } = store;
  const refused = () =>
    new CarillonError("SIGN_IN_REFUSED", "the name or the password is wrong", { hint: "Try again, or ask an admin." });
  /** @throws SIGN_IN_REFUSED, TOO_MANY_ATTEMPTS */
  const judged = async (name: string, password: string, address: string): Promise<User & { hash: string | null }> => {
    let user: Awaited<ReturnType<typeof access.userByName>> = null;
    const right = await throttle.attempt(name, address, async () => {
      user = await access.userByName(name);
      const found = user as { hash: string; disabledMs: number | null } | null;
      return (await isPassword(password, found?.hash ?? null)) && found?.disabledMs === null;
    });
    if (!right || !user) throw refused();
    return user;
  };
  const changed = <T>(result: T): T => {
    principals.forget();
    return result;
  };

  return {
    howToSignIn: async (_, call) => ({
      provider: provider && { label: provider.label, path: providerPath },
      cookie: call.cookie.present !== null,
    }),

    async signIn({ name, password }, call) {
      const user = await judged(name, password, call.address);
      const secret = makeSecret();
      const expiresMs = call.nowMs + signInMs;
      // A hash takes a while, in which the password may have been replaced: whoever still had the old one is not let in by it.
      if (!(await access.signIn(user.userId, hashOfSecret(secret), expiresMs, call.nowMs, user.hash ?? undefined)))
        throw refused();
      call.cookie.set(secret, signInMs);
      const who: Principal = {
        kind: "user",
        userId: user.userId,
        user: name,
        token: null,
        ...{ role: user.role, grants: user.grants, namespaces: null, scopes: null },
      };
      return asMe(who, Math.floor(expiresMs));
    },

    async signOut(_, call) {
      const { present } = call.cookie;
      if (present !== null) await access.signOut(hashOfSecret(present));
      call.cookie.set(null, 0);
      return changed(undefined);
    },

    getMe: async (_, call) => asMe(signedIn(call), call.expiresMs),

    async changePassword({ present, next }, call) {
      const { user } = signedIn(call);
      await judged(user, present, call.address);
      checkPassword(user, next);
      const keeping = call.cookie.present === null ? {} : { keeping: hashOfSecret(call.cookie.present) };
      await access.changeUser(user, { hash: await hashPassword(next), ...keeping }, changeOf(call, "by the user"));
      return changed(undefined);
    },

    async listUsers({ cursor, limit }) {
      return pageOf(await access.users(nameCursor(cursor), limit + 1), limit, asUser, ({ name }) => [name]);
    },

    async createUser({ name, password, role, grants = [], reason }, call) {
      checkName("a user's name", name, 100);
      checkPassword(name, password);
      checkedGrants(grants);
      const user = { name, role, grants, hash: await hashPassword(password) };
      return asUser(await access.createUser(user, changeOf(call, reason)));
    },

    async changeUser({ user, role, grants, password, disabled, reason }, call) {
      if (password !== undefined) checkPassword(user, password);
      const given = {
        ...(role === undefined ? {} : { role }),
        ...(grants === undefined ? {} : { grants: checkedGrants(grants) }),
        ...(disabled === undefined ? {} : { disabled }),
        ...(password === undefined ? {} : { hash: await hashPassword(password) }),
        ifVersion: call.ifVersion,
      };
      return changed(asUser(await access.changeUser(user, given, changeOf(call, reason))));
    },

    removeUser: async ({ user, reason }, call) =>
      changed(asUser(await access.changeUser(user, { removed: true }, changeOf(call, reason)))),

    async listTokens({ cursor, limit }, call) {
      const { role, userId } = signedIn(call);
      const rows = await access.tokens(role === "admin" ? null : userId, numberCursor(cursor), limit + 1);
      return pageOf(rows, limit, asToken, ({ tokenId }) => [tokenId]);
    },

    async createToken({ name, role, scopes, namespaces, expiresIn, reason }, call) {
      const who = signedIn(call);
      checkName("a token's name", name, 100);
      const spanMs = expiresIn === undefined ? tokenMs : parseDuration(expiresIn as number, "expiresIn");
      if (spanMs > longestTokenMs)
        throw new CarillonError("OPTION_INVALID", "expiresIn is longer than 366 days", { hint: "Give less." });
      const wanted = scopes ?? null;
      // A token cannot make what may more than itself.
      const beyond =
        who.scopes && (wanted ?? roles).some((scope) => !(who.scopes as readonly string[]).includes(scope));
      const own = highestRole(who);
      const elsewhere = (namespaces ?? []).find(
        (one) => who.namespaces && !who.namespaces.includes(checkNamespace(one)),
      );
      if (beyond || own === null || elsewhere !== undefined || (role !== undefined && !hasRole(own, role)))
        throw new CarillonError("OPTION_INVALID", "the token would be for more than who makes it", {
          hint: "Give a lesser role, or fewer scopes or namespaces.",
        });
      const secret = makeSecret();
      // What a token makes ends with it, or a leaked one could outlive itself for ever.
      const longest = who.kind === "token" ? (call.expiresMs ?? 0) : Number.MAX_SAFE_INTEGER;
      const made = await access.createToken(
        {
          ...{ userId: who.userId, name, hash: hashOfSecret(secret), role: role ?? own, scopes: wanted },
          // One that is made by a token that is good in some namespaces is good in no others.
          namespaces: namespaces ?? (who.namespaces && [...who.namespaces]),
          expiresMs: Math.min(call.nowMs + spanMs, longest),
          by: who.token,
        },
        changeOf(call, reason),
      );
      return { ...asToken(made), secret: tokenText(made.tokenId, secret) };
    },

    async revokeToken({ token, user, reason }, call) {
      const who = signedIn(call);
      let { userId } = who;
      if (user !== undefined && user !== who.user) {
        const other = who.role === "admin" ? await access.userByName(user) : null;
        // Who may not know is told the same as where there is none.
        if (!other) throw new CarillonError("TOKEN_UNKNOWN", `there is no token ${token} of ${user}`);
        userId = other.userId;
      }
      await access.revokeToken(userId, token, changeOf(call, reason));
      return changed(undefined);
    },

    async listWorkerKeys({ cursor, limit }, { reach }) {
      const before = numberCursor(cursor);
      const rows = (await store.workers.keys()).filter(({ keyId, name }) => keyId < before && reach.has(name));
      return pageOf(rows, limit, asKey, ({ keyId }) => [keyId]);
    },

    async createWorkerKey({ name, groups = ["default"], reason }, call) {
      checkName("a key's name", name, 100);
      for (const group of groups) checkName("a group", group, limits.groupNameLength);
      for (const named of [name, ...groups]) call.reach.check(named);
      const secret = makeSecret();
      const { author, reason: why } = changeOf(call, reason);
      const key = { name, groups: [...new Set(groups)], hash: hashOfSecret(secret), createdBy: author, reason: why };
      const made = await store.workers.createKey(key, call.nowMs);
      return { ...asKey(made), secret: keyText(made.keyId, secret) };
    },

    revokeWorkerKey: async ({ key, reason }, call) => asKey(await store.workers.revokeKey(key, changeOf(call, reason))),

    async listAudit({ cursor, limit, about, named, who, act, since, until, entry }) {
      const filter = {
        ...(about === undefined ? {} : { about }),
        ...(named === undefined ? {} : { named }),
        ...(who === undefined ? {} : { who }),
        ...(act === undefined ? {} : { act }),
        ...(since === undefined ? {} : { sinceMs: Date.parse(since) }),
        ...(until === undefined ? {} : { untilMs: Date.parse(until) }),
        ...(entry === undefined ? {} : { entryId: entry }),
      };
      const rows = await store.audit.list(filter, numberCursor(cursor), limit + 1);
      const item = ({ entryId, atMs, ...entry }: (typeof rows)[number]) => ({
        entry: entryId,
        at: isoTime(atMs),
        ...entry,
      });
      return pageOf(rows, limit, item, ({ entryId }) => [entryId]);
    },
  };
}
