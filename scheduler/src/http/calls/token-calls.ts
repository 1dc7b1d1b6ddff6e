import { type Principal, userUnknown } from "../../access/access.ts";
import { tokenUnknown } from "../../access/access-store.ts";
import { beyondMaker, newToken } from "../../access/new-token.ts";
import { hashOfSecret, makeSecret, tokenText } from "../../access/worker-key.ts";
import { tokenObject } from "../../api/token-json.ts";
import { parseDuration } from "../../base/duration.ts";
import type { Store } from "../../store/store.ts";
import { checkName } from "../../task/names.ts";
import type { Call, Some } from "../call.ts";
import type { Principals } from "../sign-in/principals.ts";
import { changeOf } from "./changes.ts";
import { numberCursor, pageOf } from "./pages.ts";
import { signedIn } from "./sign-in-calls.ts";

export function tokenCalls(
  store: Store,
  principals: Principals,
): Some<"listTokens" | "createToken" | "getToken" | "revokeToken"> {
  const { access } = store;
  const changed = <T>(result: T): T => principals.changed(result);
  /** Finds the user for whom an admin acts. @throws USER_UNKNOWN, also if the caller is not an admin of all namespaces */
  const otherUser = async (who: Principal, name: string) => {
    const user = who.role === "admin" ? await access.userByName(name) : null;
    if (!user) throw userUnknown(name);
    return user;
  };
  /** The id of the token's owner. @throws TOKEN_UNKNOWN, also if the caller may not view that user's tokens */
  const ownerOf = async (call: Call, token: string, user: string | undefined): Promise<number> => {
    const who = signedIn(call);
    if (user === undefined || user === who.user) return who.userId;
    const other = who.role === "admin" ? await access.userByName(user) : null;
    if (!other) throw tokenUnknown(token, user);
    return other.userId;
  };

  return {
    async listTokens({ cursor, limit }, call) {
      const { role, userId } = signedIn(call);
      const rows = await access.tokens(role === "admin" ? null : userId, numberCursor(cursor), limit + 1);
      return pageOf(rows, limit, tokenObject, ({ tokenId }) => [tokenId]);
    },

    async createToken({ name, user, role, scopes, namespaces, expiresIn, reason }, call) {
      const who = signedIn(call);
      checkName("a token's name", name, 100);
      const owner = user === undefined || user === who.user ? who : await otherUser(who, user);
      const expiresInMs = expiresIn === undefined ? undefined : parseDuration(expiresIn as number, "expiresIn");
      const asked = newToken(owner, { name, role, scopes, namespaces, expiresInMs }, call.nowMs);
      // A token must not create a token with more rights than it has itself.
      const { scopes: own, namespaces: where } = who;
      const beyond = own && (asked.scopes === null || asked.scopes.some((scope) => !own.includes(scope)));
      if (beyond || (where && asked.namespaces?.some((one) => !where.includes(one)))) throw beyondMaker();
      const secret = makeSecret();
      const made = await access.createToken(
        {
          ...asked,
          hash: hashOfSecret(secret),
          // A token that is limited to namespaces can only create tokens with the same or narrower limits.
          namespaces: asked.namespaces ?? (where && [...where]),
          // A token created by a token expires no later than that token; otherwise a leaked token could renew itself indefinitely.
          expiresMs: who.kind === "token" ? Math.min(asked.expiresMs, call.expiresMs ?? 0) : asked.expiresMs,
          by: who.token === null ? null : { userId: who.userId, token: who.token },
        },
        changeOf(call, reason),
      );
      return { ...tokenObject(made), secret: tokenText(made.tokenId, secret) };
    },

    getToken: async ({ token, user }, call) =>
      tokenObject(await access.tokenByName(await ownerOf(call, token, user), token)),

    async revokeToken({ token, user, reason }, call) {
      await access.revokeToken(await ownerOf(call, token, user), token, changeOf(call, reason));
      return changed(undefined);
    },
  };
}
