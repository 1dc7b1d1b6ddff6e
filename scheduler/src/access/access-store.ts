import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import { type Grant, type Role, type Scope, userUnknown } from "./access.ts";

export interface User {
  userId: number;
  name: string;
  /** Increases with each change of this record, except changes of the password and of the second factor. */
  version: number;
  /** The role in every namespace; null: the user has roles only through `grants`. */
  role: Role | null;
  grants: Grant[];
  createdMs: number;
  createdBy: string;
  /** True if a provider signs the user in, without a password. */
  provided: boolean;
  /** The time in epoch ms from which the user is disabled; null: not disabled. */
  disabledMs: number | null;
  /** True: the user must replace the password, because an admin set it or the first start generated it. */
  temporary: boolean;
  /** The time in epoch ms at which the user's second factor was confirmed; null: the user has none. */
  secondFactorMs: number | null;
}

export interface Token {
  tokenId: number;
  name: string;
  user: string;
  userId: number;
  role: Role;
  scopes: Scope[] | null;
  /** The namespaces in which the token is valid; null: every namespace in which the token's user has a role. */
  namespaces: string[] | null;
  createdMs: number;
  expiresMs: number;
  revokedMs: number | null;
}

/**
 * A stored credential (a sign-in or a token) with its user. The caller compares the times to decide whether the credential is
 * still valid.
 */
export interface Credential {
  user: User;
  /** The start of the sign-in in epoch ms; null: the credential is a token. */
  begunMs: number | null;
  /** For a sign-in: the time in epoch ms at which it ends unless it is used again. For a token: when the token expires. */
  expiresMs: number;
  /** True for a sign-in with a second-factor code in addition to the password, or by an identity provider. */
  isProven: boolean;
  /** The token; null: the credential is a sign-in. */
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
  /** With `hash`: true if the user must replace the new password. Default: false. */
  temporary?: boolean;
  disabled?: boolean;
  removed?: boolean;
  /** The hash of the secret of a sign-in that stays valid when the password changes. */
  keeping?: Buffer;
  /** The change is refused unless the record has this version; null: any version. */
  ifVersion?: number | null;
}

/** A user's session in one browser. */
export interface SignIn {
  signInId: number;
  begunMs: number;
  /** The last recorded use in epoch ms. Several uses within a minute are recorded once. */
  seenMs: number;
  /** The time in epoch ms at which an unused sign-in ends. Each use moves this time, but never beyond the sign-in's maximum age. */
  expiresMs: number;
  /** The client's address, and the browser's User-Agent; both null if a node of an older version recorded the sign-in. */
  address: string | null;
  agent: string | null;
  /** The hash of the sign-in's secret. */
  hash: Buffer;
}

export interface NewSignIn {
  userId: number;
  /** The hash of the sign-in's secret. */
  hash: Buffer;
  expiresMs: number;
  /** The password's hash that was checked; the sign-in is refused if the password has been replaced since. */
  password?: string;
  /** True: the user gave a second-factor code in addition to the password. */
  secondFactor?: boolean;
  /** The client's address, and the browser's User-Agent. */
  address: string;
  agent: string;
}

export interface NewToken extends Pick<Token, "userId" | "name" | "role" | "scopes" | "expiresMs"> {
  hash: Buffer;
  namespaces?: string[] | null;
  /** The token with which this one is created; revoking that token revokes this one too. Default null: a user creates it. */
  by?: { userId: number; token: string } | null;
}

/** Selects the sign-ins to end: one by its number, or all except the one whose secret has the hash `keeping`. */
export type EndedSignIns = { signInId: number } | { keeping: Buffer | null };

/**
 * The part of the store's port that stores users, sign-ins and tokens. A method that takes a `Change` adds the audit entry in the
 * transaction of the change.
 */
export interface AccessStore {
  /** Returns up to `limit` users after the name `afterName`, ordered by name. */
  users(afterName: string, limit: number): Promise<User[]>;
  /** @returns the user with the password's hash (null: no password); null: no user has the name */
  userByName(name: string): Promise<(User & { hash: string | null }) | null>;
  /** @throws USER_NAME_TAKEN */
  createUser(user: NewUser, change: Change): Promise<User>;
  /**
   * Returns the user that an identity provider identifies by `subject`. The first call creates the user; each later call sets the
   * role and grants that the provider reports now, except for a user who was removed here and stays removed.
   * @throws USER_NAME_TAKEN if another user already has the name
   */
  providedUser(given: ProvidedUser, change: Change): Promise<User>;
  /**
   * Creates the first user, unless a user was ever created. Repeatable.
   * @returns true if this call, or an earlier one with the same hash, created the user
   */
  createFirst(user: { name: string; hash: string; temporary: boolean }, nowMs: number): Promise<boolean>;
  /**
   * Changes a user. A new password ends every sign-in of the user except `keeping`; disabling or removing the user ends all sign-ins and
   * tokens.
   * @throws USER_UNKNOWN, ADMIN_NEEDED if no admin would be left, USER_STALE unless the user is at the version `ifVersion`
   */
  changeUser(name: string, given: UserChange, change: Change): Promise<User>;

  /**
   * Stores a new hash of the same password, made with other cost parameters, unless the password was replaced in the meantime. Adds no
   * audit entry, because no user made this change.
   */
  rehash(userId: number, from: string, to: string): Promise<void>;

  /**
   * Records a sign-in. @returns false if the user may no longer sign in, the password has been replaced, or the user has a second
   * factor that this sign-in did not prove
   */
  signIn(given: NewSignIn, nowMs: number): Promise<boolean>;
  signOut(hash: Buffer): Promise<void>;
  /**
   * Returns one result per hash, in the same order; null: no sign-in of an existing user has the hash. @param idleMs how long a
   * sign-in lasts without use
   */
  signInsOf(hashes: Buffer[], idleMs: number): Promise<(Credential | null)[]>;
  /** Records that these sign-ins are used now, unless a use within the last `apartMs` is already recorded. */
  signInsSeen(hashes: Buffer[], nowMs: number, apartMs: number): Promise<void>;
  /** Returns the user's sign-ins that have not ended, newest first. */
  signIns(userId: number, place: { beforeId: number; limit: number }, idleMs: number, nowMs: number): Promise<SignIn[]>;
  /** @returns the number of sign-ins that were ended */
  endSignIns(user: Pick<User, "userId" | "name">, which: EndedSignIns, change: Change): Promise<number>;

  /** Returns tokens, newest first. @param userId null: the tokens of all users */
  tokens(userId: number | null, beforeId: number, limit: number): Promise<Token[]>;
  /** Returns the user's newest token with this name; only the newest can be valid. @throws TOKEN_UNKNOWN */
  tokenByName(userId: number, name: string): Promise<Token>;
  /** @throws TOKEN_NAME_TAKEN, SIGN_IN_NEEDED if the user or token that creates it has just lost its access */
  createToken(token: NewToken, change: Change): Promise<Token>;
  /** Revokes the token, the tokens that it created, and the tokens created by these in turn. Repeatable. @throws TOKEN_UNKNOWN */
  revokeToken(userId: number, name: string, change: Change): Promise<Token>;
  /** Returns one result per id, in the order of the ids; null: there is no such token, or its user was removed. */
  tokensOf(tokenIds: number[]): Promise<((Credential & { hash: Buffer }) | null)[]>;

  /** Deletes sign-ins that have reached their maximum age, and stored answers whose idempotency key is too old to be used again. */
  sweep(nowMs: number): Promise<void>;
}

/** Creates the error for an unknown token. @param user the token's user, for the message; omitted for the caller's own token */
export const tokenUnknown = (name: string, user?: string): CarillonError =>
  new CarillonError("TOKEN_UNKNOWN", `there is no token ${name}${user === undefined ? "" : ` of ${user}`}`, {
    hint: "The list of tokens has their names.",
  });

/** Returns the user with this name. @throws USER_UNKNOWN */
export async function userCalled(access: AccessStore, name: string): Promise<User> {
  const user = await access.userByName(name);
  if (user) return user;
  throw userUnknown(name);
}
