import type { Change } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import type { User } from "./access-store.ts";
import type { Sealed, SecretPlace } from "./secrets/secret-keys.ts";

/** The users that must have a second factor. */
export const factorChoices = ["nobody", "admins", "everyone"] as const;
export type FactorChoice = (typeof factorChoices)[number];

type Owner = Pick<User, "userId" | "name">;

/** The secret as the store keeps it: sealed if the server has a key for secrets. */
export type KeptFactor = { plain: string } | Sealed;

export interface FactorState {
  enrolledMs: number;
  /** Number of codes that are not used yet. */
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
  /** Replaces a factor that was begun and not confirmed. @throws SECOND_FACTOR_TAKEN */
  begin(userId: number, kept: KeptFactor, nowMs: number): Promise<void>;
  /**
   * Counts a guess before it is judged, so that guesses made at once cannot get past the limit.
   * @returns null: there is no factor @throws TOO_MANY_ATTEMPTS
   */
  guess(userId: number, nowMs: number): Promise<FactorGuess | null>;
  /** Records that a code of this time step was right. @returns false: a code of this step or a later one was used before */
  accept(userId: number, step: number): Promise<boolean>;
  /** @returns false: there is no such code any more */
  acceptRecovery(user: Owner, hash: Buffer, change: Change): Promise<boolean>;
  /**
   * Confirms the factor, which counts from now on, and ends every sign-in of the user except `keeping`.
   * @param keeping hash of the secret of the sign-in that goes on; null: none goes on
   * @returns false: its code was used before, or another request confirmed it
   */
  confirm(user: Owner, step: number, recovery: Buffer[], keeping: Buffer | null, change: Change): Promise<boolean>;
  /** @returns false: the user had no second factor */
  remove(user: Owner, change: Change): Promise<boolean>;
}

/** Bound into the sealed value, so that neither another user's row nor a task's secret can replace it. */
export const factorPlace = (userId: number): SecretPlace => ({ name: `second factor of user ${userId}`, version: 1 });

export const factorUnknown = (user: string) =>
  new CarillonError("SECOND_FACTOR_UNKNOWN", `${user} has no second factor`, {
    hint: "Begin with POST /v1/me/second-factor, or in the console's settings.",
  });
