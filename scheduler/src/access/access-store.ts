import type { Change } from "../base/change.ts";
import { type Grant, type Role, type Scope, userUnknown } from "./access.ts";

export interface User {
  userId: number;
  name: string;
  /** Each change of this record makes the next one; a new password and the second factor do not. */
  version: number;
  /** Everywhere; null: only where `grants` say. */
  role: Role | null;
  grants: Grant[];
  createdMs: number;
  createdBy: string;
  /** Signed in by a provider, without a password. */
  provided: boolean;
  /** Locked out since. */
  disabledMs: number | null;
  /** The password was handed to its user, who is to replace it. */
  temporary: boolean;
  /** Since when a code is asked for beside the password; null: none is. */
  secondFactorMs: number | null;
}

export interface Token {
  tokenId: number;
  name: string;
  user: string;
  userId: number;
  role: Role;
  scopes: Scope[] | null;
  /** null: wherever its user's role is. */
  namespaces: string[] | null;
  createdMs: number;
  expiresMs: number;
  revokedMs: number | null;
}

/** Who a credential stands for, as far as the store knows it: whether it still holds is judged by its times. */
export interface Credential {
  user: User;
  /** Of a sign-in: when it ends without a further use. */
  expiresMs: number;
  /** For a sign-in: a code was shown beside the password, or a provider signed the user in. */
  isProven: boolean;
  /** null: a sign-in. */
  token: Pick<Token, "name" | "role" | "scopes" | "namespaces" | "revokedMs"> | null;
}

export interface NewUser {
  name: string;
  hash: string;
  role: Role | null;
  grants?: Grant[];
  /** Default: the password is for good. */
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
  /** Of the new password: its user is to replace it. Default: it is for good. */
  temporary?: boolean;
  disabled?: boolean;
  removed?: boolean;
  /** The sign-in that goes on after a new password. */
  keeping?: Buffer;
  /** null: any version. */
  ifVersion?: number | null;
}

/** A user's time in one browser. */
export interface SignIn {
  signInId: number;
  begunMs: number;
  /** The last use that was put down; uses of the same minute are one. */
  seenMs: number;
  /** When it ends: without a further use, and in any case. */
  expiresMs: number;
  /** Whom the request came from, and what the browser calls itself; null: begun at a node of an older version. */
  address: string | null;
  agent: string | null;
  /** Of the secret. */
  hash: Buffer;
}

export interface NewSignIn {
  userId: number;
  /** Of the session's secret. */
  hash: Buffer;
  expiresMs: number;
  /** The password's hash that the sign-in was checked against; the password may have been replaced since. */
  password?: string;
  /** A code was shown beside the password. */
  secondFactor?: boolean;
  /** Whom the request came from, and what the browser calls itself. */
  address: string;
  agent: string;
}

export interface NewToken extends Pick<Token, "userId" | "name" | "role" | "scopes" | "expiresMs"> {
  hash: Buffer;
  namespaces?: string[] | null;
  /** The name of the user's token that makes this one, which ends with its maker; default: the user makes it. */
  by?: string | null;
}

/** One by its number; or all, but the one whose secret has this hash, which goes on. */
export type EndedSignIns = { signInId: number } | { keeping: Buffer | null };

/** The part of the store's port that keeps users, sign-ins and tokens. Each change has its audit entry in its transaction. */
export interface AccessStore {
  /** By name. */
  users(afterName: string, limit: number): Promise<User[]>;
  /** @param hash of the password, with all that is needed to compare with it */
  userByName(name: string): Promise<(User & { hash: string | null }) | null>;
  /** @throws USER_NAME_TAKEN */
  createUser(user: NewUser, change: Change): Promise<User>;
  /**
   * The user whom a provider calls `subject`, made at the first time, with the role and grants that it says now.
   * @throws USER_NAME_TAKEN when somebody else has the name already
   */
  providedUser(given: ProvidedUser, change: Change): Promise<User>;
  /** The first user, if there never was one. Repeatable. @returns whether it was made, now or by an earlier try with the same hash */
  createFirst(user: { name: string; hash: string; temporary: boolean }, nowMs: number): Promise<boolean>;
  /**
   * Of a new password, every sign-in of the user ends but `keeping`; of a lock-out, all and the tokens too.
   * @throws USER_UNKNOWN, ADMIN_NEEDED when no admin would be left, USER_STALE unless it is at the version `ifVersion`
   */
  changeUser(name: string, given: UserChange, change: Change): Promise<User>;

  /** The same password's hash at another cost, unless it was replaced meanwhile. It is no change that anybody made, so no entry. */
  rehash(userId: number, from: string, to: string): Promise<void>;

  /** @returns false: the user may not, or not by that password, sign in any more */
  signIn(given: NewSignIn, nowMs: number): Promise<boolean>;
  signOut(hash: Buffer): Promise<void>;
  /** Each in its place. @param idleMs how long one lasts without a use */
  signInsOf(hashes: Buffer[], idleMs: number): Promise<(Credential | null)[]>;
  /** Puts down that they are used now, where that was not told for `apartMs`. */
  signInsSeen(hashes: Buffer[], nowMs: number, apartMs: number): Promise<void>;
  /** Those of a user that have not ended, newest first. */
  signIns(userId: number, place: { beforeId: number; limit: number }, idleMs: number, nowMs: number): Promise<SignIn[]>;
  /** @returns how many there were */
  endSignIns(user: Pick<User, "userId" | "name">, which: EndedSignIns, change: Change): Promise<number>;

  /** Newest first. @param userId null: everyone's */
  tokens(userId: number | null, beforeId: number, limit: number): Promise<Token[]>;
  /**
   * @throws TOKEN_NAME_TAKEN, SIGN_IN_NEEDED when whoever makes it has just been locked out
   */
  createToken(token: NewToken, change: Change): Promise<Token>;
  /** With it ends what it made, and what that made. Repeatable. @throws TOKEN_UNKNOWN */
  revokeToken(userId: number, name: string, change: Change): Promise<Token>;
  /** Each in its place. */
  tokensOf(tokenIds: number[]): Promise<((Credential & { hash: Buffer }) | null)[]>;

  /** Forgets sign-ins that are over, and answers that nobody asks for again. */
  sweep(nowMs: number): Promise<void>;
}

/** @throws USER_UNKNOWN */
export async function userCalled(access: AccessStore, name: string): Promise<User> {
  const user = await access.userByName(name);
  if (user) return user;
  throw userUnknown(name);
}
