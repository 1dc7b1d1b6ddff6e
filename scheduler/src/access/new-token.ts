import { CarillonError } from "../base/errors.ts";
import { checkNamespace } from "../base/namespace.ts";
import { hasRole, highestRole, type Principal, type Role, type Scope } from "./access.ts";
import type { NewToken } from "./access-store.ts";

const dayMs = 86_400_000;
const defaultMs = 90 * dayMs;
const longestMs = 366 * dayMs;

export interface AskedToken {
  name: string;
  /** Default: the highest role that the token's user has in any namespace. */
  role?: Role | undefined;
  /** Default: all scopes that the role allows. */
  scopes?: Scope[] | undefined;
  /** Default: all namespaces in which the token's user has a role. */
  namespaces?: string[] | undefined;
  /** The time in ms after which the token expires. Default: 90 days. */
  expiresInMs?: number | undefined;
}

/**
 * @throws OPTION_INVALID if the user has no role, the role is above the user's highest role, a namespace is invalid, or the
 * token would be valid for longer than 366 days
 */
export function newToken(
  user: Pick<Principal, "userId" | "role" | "grants">,
  { name, role, scopes, namespaces, expiresInMs = defaultMs }: AskedToken,
  nowMs: number,
): Omit<NewToken, "hash"> {
  if (expiresInMs > longestMs)
    throw new CarillonError("OPTION_INVALID", "a token would be valid for longer than 366 days", {
      hint: "Give less.",
    });
  const own = highestRole(user);
  if (own === null || (role !== undefined && !hasRole(own, role))) throw beyondMaker();
  return {
    userId: user.userId,
    name,
    role: role ?? own,
    scopes: scopes ?? null,
    namespaces: namespaces?.map(checkNamespace) ?? null,
    expiresMs: nowMs + expiresInMs,
  };
}

export const beyondMaker = () =>
  new CarillonError("OPTION_INVALID", "the token would be for more than its user or its maker may", {
    hint: "Give a lesser role, or fewer scopes or namespaces.",
  });
