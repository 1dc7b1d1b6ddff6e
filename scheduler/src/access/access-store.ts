import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { type Grant, type Role, type Scope, userUnknown } from "./access.ts";

export interface User {
  userId: number;
  name: string;
  /** Increases with each change of this record; a new password and the second factor do not change it. */
  version: number;
  /** The role in every namespace; null: the user has roles only through `grants`. */
  role: Role | null;
  grants: Grant[];
  createdMs: number;
  createdBy: string;
  /** True if a provider signs the user in, without a password. */
  provided: boolean;
  /** Since when the user is disabled; null: the user is not disabled. */
  disabledMs: number | null;
  /** True: the user signed in with a password that an admin handed over, and must replace it. */
  temporary: boolean;
  /** When the user's second factor was confirmed; null: the user has none. */
  secondFactorMs: number | null;
}

export interface Token {
  tokenId: number;
  name: string;
  user: string;
  userId: number;
  role: Role;
  scopes: Scope[] | null;
  /** null: every namespace in which the token's user has a role. */
  namespaces: string[] | null;
  createdMs: number;
  expiresMs: number;
  revokedMs: number | null;
}

/**
 * The user and, for a token, the token behind a credential, as the store has them. The caller compares the times to decide whether the
 * credential is still valid.
 */
export interface Credential {
  user: User;
  /** When the sign-in began; null: the credential is a token. */
  begunMs: number | null;
  /** For a sign-in: when it ends if it is not used again. */
  expiresMs: number;
  /** True for a sign-in with a code beside the password, or by a provider. */
  isProven: boolean;
  /** null: the credential is a sign-in. */
  token: Pick<Token, "name" | "role" | "scopes" | "namespaces" | "revokedMs"> | null;
}

export interface NewUser {
  name: string;
  hash: string;
  role: Role | null;
  grants?: Grant[];
  /** True: the user must replace the password. Default: false. */
  temporary?: boolean;
}

/** A user as an identity provider describes it. */
export interface ProvidedUser {
  issuer: string;
  subject: string;
  name: string;
  role: Role | null;
  grants: Grant[];
}

export interface UserChange {
  role?: Role | null;
  grants?: Grant[];
  hash?: string;
  /** With `hash`: the user must replace the new password. Default: false. */
  temporary?: boolean;
  disabled?: boolean;
  removed?: boolean;
  /** The hash of the sign-in that stays valid after the password was changed. */
  keeping?: Buffer;
  /** The version that must be the present one; null: any version. */
  ifVersion?: number | null;
}

/** A user's session in one browser. */
export interface SignIn {
  signInId: number;
  begunMs: number;
  /** The last recorded use; uses in the same minute are recorded once. */
  seenMs: number;
  /** When the sign-in ends if it is not used again; at the latest at its maximum age. */
  expiresMs: number;
  /** The client's address, and the browser's User-Agent; null: the sign-in was made at a node of an older version. */
  address: string | null;
  agent: string | null;
  /** The hash of the session's secret. */
  hash: Buffer;
}

export interface NewSignIn {
  userId: number;
  /** The hash of the session's secret. */
  hash: Buffer;
  expiresMs: number;
  /** The hash that the password was checked against; the password may have been replaced meanwhile. */
  password?: string;
  /** True: a code was given in addition to the password. */
  secondFactor?: boolean;
  /** The client's address, and the browser's User-Agent. */
  address: string;
  agent: string;
}

export interface NewToken extends Pick<Token, "userId" | "name" | "role" | "scopes" | "expiresMs"> {
  hash: Buffer;
  namespaces?: string[] | null;
  /** The token that creates this one, which ends with its creator; null, the default: a user creates it. */
  by?: { userId: number; token: string } | null;
}

/** One sign-in by its number; or all sign-ins except the one whose secret has the hash `keeping`. */
export type EndedSignIns = { signInId: number } | { keeping: Buffer | null };

/** The part of the store's port that keeps users, sign-ins and tokens. Each change has its audit entry in its transaction. */
export interface AccessStore {
  /** Ordered by name. */
  users(afterName: string, limit: number): Promise<User[]>;
  /** @returns also the password's hash, with all that is needed to check a password; null: no user has the name */
  userByName(name: string): Promise<(User & { hash: string | null }) | null>;
  /** @throws USER_NAME_TAKEN */
  createUser(user: NewUser, change: Change): Promise<User>;
  /**
   * The user that a provider identifies by `subject`. The first call creates the user; each call sets the role and grants that the
   * provider reports now.
   * @throws USER_NAME_TAKEN when another user already has the name
   */
  providedUser(given: ProvidedUser, change: Change): Promise<User>;
  /**
   * Creates the first user, if there never was one. Repeatable. @returns true if this call, or an earlier one with the same hash, created
   * the user
   */
  createFirst(user: { name: string; hash: string; temporary: boolean }, nowMs: number): Promise<boolean>;
  /**
   * A new password ends every sign-in of the user except `keeping`; disabling or removing the user ends all sign-ins and tokens.
   * @throws USER_UNKNOWN, ADMIN_NEEDED when no admin would be left, USER_STALE unless the user is at the version `ifVersion`
   */
  changeUser(name: string, given: UserChange, change: Change): Promise<User>;

  /**
   * Stores a new hash of the same password, made at another cost, unless the password was replaced meanwhile. Makes no audit entry, because
   * no user made this change.
   */
  rehash(userId: number, from: string, to: string): Promise<void>;

  /** @returns false: the user may no longer sign in, or not with that password */
  signIn(given: NewSignIn, nowMs: number): Promise<boolean>;
  signOut(hash: Buffer): Promise<void>;
  /** One result per hash, in the same order. @param idleMs how long a sign-in lasts without use */
  signInsOf(hashes: Buffer[], idleMs: number): Promise<(Credential | null)[]>;
  /** Records that these sign-ins are used now, unless a use within the last `apartMs` is already recorded. */
  signInsSeen(hashes: Buffer[], nowMs: number, apartMs: number): Promise<void>;
  /** A user's sign-ins that have not ended, newest first. */
  signIns(userId: number, place: { beforeId: number; limit: number }, idleMs: number, nowMs: number): Promise<SignIn[]>;
  /** @returns how many sign-ins were ended */
  endSignIns(user: Pick<User, "userId" | "name">, which: EndedSignIns, change: Change): Promise<number>;

  /** Newest first. @param userId null: the tokens of all users */
  tokens(userId: number | null, beforeId: number, limit: number): Promise<Token[]>;
  /** The user's newest token with this name, which is the valid one if there is a valid one. @throws TOKEN_UNKNOWN */
  tokenByName(userId: number, name: string): Promise<Token>;
  /** @throws TOKEN_NAME_TAKEN, SIGN_IN_NEEDED when the creator has just been locked out */
  createToken(token: NewToken, change: Change): Promise<Token>;
  /** Also revokes the tokens that this token created, and those that they created. Repeatable. @throws TOKEN_UNKNOWN */
  revokeToken(userId: number, name: string, change: Change): Promise<Token>;
  /** One result per id, in the order of the ids. */
  tokensOf(tokenIds: number[]): Promise<((Credential & { hash: Buffer }) | null)[]>;

  /** Deletes expired sign-ins, and answers to idempotency keys that are too old to be requested again. */
  sweep(nowMs: number): Promise<void>;
}

/** @param user the token's user; default: the caller */
export const tokenUnknown = (name: string, user?: string): CarillonError =>
  new CarillonError("TOKEN_UNKNOWN", `there is no token ${name}${user === undefined ? "" : ` of ${user}`}`, {
    hint: "The list of tokens has their names.",
  });

/** @throws USER_UNKNOWN */
export async function userCalled(access: AccessStore, name: string): Promise<User> {
  const user = await access.userByName(name);
  if (user) return user;
  throw userUnknown(name);
}
