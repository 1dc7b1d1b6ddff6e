import { hasRole, highestRole, roles } from "../../access/access.ts";
import type { Token } from "../../access/access-store.ts";
import { hashOfSecret, makeSecret, tokenText } from "../../access/worker-key.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import { parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import { checkNamespace } from "../../base/namespace.ts";
import type { Store } from "../../store/store.ts";
import { checkName } from "../../task/names.ts";
import type { Call, Some } from "../call.ts";
import type { Principals } from "../sign-in/principals.ts";
import { changeOf } from "./changes.ts";
import { numberCursor, pageOf } from "./pages.ts";
import { signedIn } from "./sign-in-calls.ts";

const dayMs = 86_400_000;
const tokenMs = 90 * dayMs;
const longestTokenMs = 366 * dayMs;

const asToken = ({ name, user, role, scopes, namespaces, createdMs, expiresMs, revokedMs }: Token) => ({
  name,
  user,
  role,
  scopes,
  namespaces,
  created: isoTime(createdMs),
  expires: isoTime(expiresMs),
  revoked: iso(revokedMs),
});
export function tokenCalls(
  store: Store,
  principals: Principals,
): Some<"listTokens" | "createToken" | "getToken" | "revokeToken"> {
  const { access } = store;
  const changed = <T>(result: T): T => principals.changed(result);
  /** The number of the user whose token is meant. @throws TOKEN_UNKNOWN also where the caller may not read that user's tokens */
  const ownerOf = async (call: Call, token: string, user: string | undefined): Promise<number> => {
    const who = signedIn(call);
    if (user === undefined || user === who.user) return who.userId;
    const other = who.role === "admin" ? await access.userByName(user) : null;
    if (!other) throw new CarillonError("TOKEN_UNKNOWN", `there is no token ${token} of ${user}`);
    return other.userId;
  };

  return {
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
      // A token cannot make a token with more rights than its own.
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
      // A token made by a token ends no later than its maker; otherwise a leaked token could renew itself for ever.
      const longest = who.kind === "token" ? (call.expiresMs ?? 0) : Number.MAX_SAFE_INTEGER;
      const made = await access.createToken(
        {
          userId: who.userId,
          name,
          hash: hashOfSecret(secret),
          role: role ?? own,
          scopes: wanted,
          // A token made by a token that is limited to some namespaces is limited to the same ones.
          namespaces: namespaces ?? (who.namespaces && [...who.namespaces]),
          expiresMs: Math.min(call.nowMs + spanMs, longest),
          by: who.token,
        },
        changeOf(call, reason),
      );
      return { ...asToken(made), secret: tokenText(made.tokenId, secret) };
    },

    getToken: async ({ token, user }, call) =>
      asToken(await access.tokenByName(await ownerOf(call, token, user), token)),

    async revokeToken({ token, user, reason }, call) {
      await access.revokeToken(await ownerOf(call, token, user), token, changeOf(call, reason));
      return changed(undefined);
    },
  };
}
