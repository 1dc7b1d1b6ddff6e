import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import type { User } from "./access-store.ts";
import type { Sealed, SecretPlace } from "./secrets/secret-keys.ts";

/** Which users must have a second factor. */
export const factorChoices = ["nobody", "admins", "everyone"] as const;
export type FactorChoice = (typeof factorChoices)[number];

type Owner = Pick<User, "userId" | "name">;

/** The secret as the store keeps it: sealed if the server has a key for secrets. */
export type KeptFactor = { plain: string } | Sealed;

export interface FactorState {
  enrolledMs: number;
  /** The number of unused recovery codes. */
  recoveryCodes: number;
}

/** The secret that a code is checked against. */
export interface FactorGuess {
  kept: KeptFactor;
  isConfirmed: boolean;
}

/** The part of the store's port that keeps second factors. */
export interface SecondFactorStore {
  /** null: the user has no second factor, or has not confirmed it. */
  find(userId: number): Promise<FactorState | null>;
  /** Replaces a factor that was begun but not confirmed. @throws SECOND_FACTOR_TAKEN */
  begin(userId: number, kept: KeptFactor, nowMs: number): Promise<void>;
  /**
   * Counts a guess before it is checked, so that concurrent guesses cannot exceed the limit.
   * @returns null: there is no factor @throws TOO_MANY_ATTEMPTS
   */
  guess(userId: number, nowMs: number): Promise<FactorGuess | null>;
  /** Records that a code of this time step was right. @returns false: a code of this step or a later one was already used */
  accept(userId: number, step: number): Promise<boolean>;
  /** @returns false: there is no such code, or it was used */
  acceptRecovery(user: Owner, hash: Buffer, change: Change): Promise<boolean>;
  /**
   * Confirms the factor, which is required from now on, and ends every sign-in of the user except `keeping`.
   * @param keeping the hash of the secret of the sign-in that stays valid; null: all sign-ins end
   * @returns false: its code was used before, or another request confirmed the factor
   */
  confirm(user: Owner, step: number, recovery: Buffer[], keeping: Buffer | null, change: Change): Promise<boolean>;
  /** @returns false: the user had no second factor */
  remove(user: Owner, change: Change): Promise<boolean>;
}

/** Bound into the sealed value, so that neither another user's sealed value nor a task's secret can be put in its place. */
export const factorPlace = (userId: number): SecretPlace => ({ name: `second factor of user ${userId}`, version: 1 });

export const factorUnknown = (user: string) =>
  new CarillonError("SECOND_FACTOR_UNKNOWN", `${user} has no second factor`, {
    hint: "Begin with POST /v1/me/second-factor, or in the console's settings.",
  });
