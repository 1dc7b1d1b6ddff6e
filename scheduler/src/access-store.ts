import type { Grant, Role, Scope } from "./access.ts";
import type { Change } from "./store.ts";

export interface User {
  userId: number;
  name: string;
  /** Of what is told here: each change of it, a new password apart, makes the next. */
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
  expiresMs: number;
  /** null: a sign-in. */
  token: Pick<Token, "name" | "role" | "scopes" | "namespaces" | "revokedMs"> | null;
}

/** The part of the store's port that keeps users, sign-ins and tokens. Each change has its audit entry in its transaction. */
export interface AccessStore {
  /** By name. */
  users(afterName: string, limit: number): Promise<User[]>;
  /** @param hash of the password, with all that is needed to compare with it */
  userByName(name: string): Promise<(User & { hash: string | null }) | null>;
  /** @throws USER_NAME_TAKEN */
  createUser(user: { name: string; hash: string; role: Role | null; grants?: Grant[] }, change: Change): Promise<User>;
  /**
   * The user whom a provider calls `subject`, made at the first time, with the role and grants that it says now.
   * @throws USER_NAME_TAKEN when somebody else has the name already
   */
  providedUser(
    given: { issuer: string; subject: string; name: string; role: Role | null; grants: Grant[] },
    change: Change,
  ): Promise<User>;
  /** The first user, if there never was one. @returns whether it was made now */
  createFirst(user: { name: string; hash: string }, nowMs: number): Promise<boolean>;
  /**
   * Of a new password, every sign-in of the user ends but `keeping`; of a lock-out, all and the tokens too.
   * @throws USER_UNKNOWN, ADMIN_NEEDED when no admin would be left, USER_STALE unless it is at the version `ifVersion`
   */
  changeUser(
    name: string,
    given: {
      role?: Role | null;
      grants?: Grant[];
      hash?: string;
      disabled?: boolean;
      removed?: boolean;
      keeping?: Buffer;
      /** null: whatever is there. */
      ifVersion?: number | null;
    },
    change: Change,
  ): Promise<User>;

  /**
   * @param password the hash that the given one was right for: it may have been replaced since
   * @returns false: the user may not, or not by that password, sign in any more
   */
  signIn(userId: number, hash: Buffer, expiresMs: number, nowMs: number, password?: string): Promise<boolean>;
  signOut(hash: Buffer): Promise<void>;
  /** Each in its place. */
  signInsOf(hashes: Buffer[]): Promise<(Credential | null)[]>;

  /** Newest first. @param userId null: everyone's */
  tokens(userId: number | null, beforeId: number, limit: number): Promise<Token[]>;
  /**
   * @param token `by` the user's token of this name, with which it ends; default by the user
   * @throws TOKEN_NAME_TAKEN, SIGN_IN_NEEDED when whoever makes it has just been locked out
   */
  createToken(
    token: Pick<Token, "userId" | "name" | "role" | "scopes" | "expiresMs"> & {
      hash: Buffer;
      namespaces?: string[] | null;
      by?: string | null;
    },
    change: Change,
  ): Promise<Token>;
  /** With it ends what it made, and what that made. Repeatable. @throws TOKEN_UNKNOWN */
  revokeToken(userId: number, name: string, change: Change): Promise<Token>;
  /** Each in its place. */
  tokensOf(tokenIds: number[]): Promise<((Credential & { hash: Buffer }) | null)[]>;

  /** Forgets sign-ins that are over, and answers that nobody asks for again. */
  sweep(nowMs: number): Promise<void>;
}
