import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import type { User } from "./access-store.ts";
import type { Sealed, SecretPlace } from "./secrets/secret-keys.ts";

/** The setting that determines which users must have a second factor. */
export const factorChoices = ["nobody", "admins", "everyone"] as const;
export type FactorChoice = (typeof factorChoices)[number];

type Owner = Pick<User, "userId" | "name">;

/** The secret of a second factor as stored: encrypted if the server has a key for secrets. */
export type KeptFactor = { plain: string } | Sealed;

export interface FactorState {
  enrolledMs: number;
  /** The number of unused recovery codes. */
  recoveryCodes: number;
}

/** The stored secret against which a code is checked. */
export interface FactorGuess {
  kept: KeptFactor;
  isConfirmed: boolean;
}

/** The part of the store's port that stores second factors. */
export interface SecondFactorStore {
  /** null: the user has no second factor, or has not confirmed it. */
  find(userId: number): Promise<FactorState | null>;
  /**
   * Stores an unconfirmed second factor, which replaces an earlier unconfirmed one. @throws SECOND_FACTOR_TAKEN if the user has a
   * confirmed one
   */
  begin(userId: number, kept: KeptFactor, nowMs: number): Promise<void>;
  /**
   * Counts an attempt before its code is checked, so that concurrent attempts cannot exceed the limit.
   * @returns the secret to check against; null: the user has no second factor @throws TOO_MANY_ATTEMPTS
   */
  guess(userId: number, nowMs: number): Promise<FactorGuess | null>;
  /** Records that the code of this time step was used. @returns false if a code of this or a later step was used before */
  accept(userId: number, step: number): Promise<boolean>;
  /** Uses and deletes a recovery code. @returns false if the user does not have this code, or has used it already */
  acceptRecovery(user: Owner, hash: Buffer, change: Change): Promise<boolean>;
  /**
   * Confirms the second factor, so that sign-ins require it from now on, and ends every sign-in of the user except `keeping`.
   * @param keeping the hash of the secret of the sign-in that stays valid; null: all sign-ins end
   * @returns false if the code was used before, or if the user no longer has an unconfirmed factor
   */
  confirm(user: Owner, step: number, recovery: Buffer[], keeping: Buffer | null, change: Change): Promise<boolean>;
  /** Removes the user's second factor. @returns false if the user had none */
  remove(user: Owner, change: Change): Promise<boolean>;
}

/** The encryption binds the secret to this name, so that no other user's secret and no task's secret can replace it in the store. */
export const factorPlace = (userId: number): SecretPlace => ({ name: `second factor of user ${userId}`, version: 1 });

export const factorUnknown = (user: string) =>
  new CarillonError("SECOND_FACTOR_UNKNOWN", `${user} has no second factor`, {
    hint: "Begin with POST /v1/me/second-factor, or in the console's settings.",
  });
