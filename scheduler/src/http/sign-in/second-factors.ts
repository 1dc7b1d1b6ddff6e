import { highestRole, type Principal } from "../../access/access.ts";
import type { User } from "../../access/access-store.ts";
import {
  codeRefused,
  factorUri,
  hashOfRecoveryCode,
  isTotpCode,
  makeFactorSecret,
  makeRecoveryCodes,
  stepOf,
} from "../../access/second-factor.ts";
import { type FactorChoice, factorPlace, factorUnknown, type KeptFactor, type SecondFactorStore } from "../../access/second-factor-store.ts";
import type { SecretKeys } from "../../access/secrets/secret-keys.ts";
import type { Change } from "../../base/change.ts";
import { CarillonError } from "../../base/errors.ts";

type Owner = Pick<User, "userId" | "name">;

/**
 * Makes and judges second factors.
 *
 * state × event, of one user: none –begin→ begun (another begin replaces it); begun –a right code→ confirmed: from then on each sign-in with
 * the password needs a code; confirmed –remove, by its user with a code or by an admin→ none. Of two confirmations at once one is refused.
 * Without the key that sealed the secret a code cannot be judged, and the sign-in fails with SECRET_KEY_MISSING; recovery codes need no key.
 */
export class SecondFactors {
  readonly #store: SecondFactorStore;
  readonly #keys: SecretKeys;
  /** Of whom one is asked for. */
  readonly #required: FactorChoice;

  constructor(store: SecondFactorStore, keys: SecretKeys, required: FactorChoice) {
    this.#store = store;
    this.#keys = keys;
    this.#required = required;
  }

  /** Whether someone who signed in without a second factor has to make one before anything else. */
  isRequiredOf(who: Pick<Principal, "role" | "grants">): boolean {
    return this.#required === "everyone" || (this.#required === "admins" && highestRole(who) === "admin");
  }

  find(userId: number) {
    return this.#store.find(userId);
  }

  /** @throws SECOND_FACTOR_TAKEN */
  async begin({ userId, name }: Owner, nowMs: number): Promise<{ secret: string; uri: string }> {
    const secret = makeFactorSecret();
    const kept: KeptFactor = this.#keys.some ? this.#keys.seal(secret, factorPlace(userId)) : { plain: secret };
    await this.#store.begin(userId, kept, nowMs);
    return { secret, uri: factorUri(secret, name) };
  }

  /** @returns recovery codes, of which only hashes are kept @throws CODE_REFUSED, SECOND_FACTOR_UNKNOWN, TOO_MANY_ATTEMPTS */
  async confirm(owner: Owner, code: string, keeping: Buffer | null, change: Change): Promise<string[]> {
    const guess = await this.#store.guess(owner.userId, change.nowMs);
    if (!guess || guess.isConfirmed) throw factorUnknown(owner.name);
    const step = this.#stepOf(guess.kept, owner.userId, code, change.nowMs);
    const codes = makeRecoveryCodes();
    if (step === null || !(await this.#store.confirm(owner, step, codes.map(hashOfRecoveryCode), keeping, change)))
      throw codeRefused();
    return codes;
  }

  /**
   * Judges the code of somebody whose password was right.
   * @returns whether there was a second factor
   * @throws SECOND_FACTOR_NEEDED, CODE_REFUSED, TOO_MANY_ATTEMPTS, SECRET_KEY_MISSING
   */
  async judge(owner: Owner, code: string | undefined, change: Change): Promise<boolean> {
    if ((await this.#store.find(owner.userId)) === null) return false;
    if (code === undefined || code === "")
      throw new CarillonError("SECOND_FACTOR_NEEDED", "the password is right, and a code is needed beside it", {
        hint: "Give the code that the authenticator app shows, or a recovery code.",
      });
    const guess = await this.#store.guess(owner.userId, change.nowMs);
    // Removed meanwhile.
    if (!guess) return false;
    if (!isTotpCode(code)) {
      if (await this.#store.acceptRecovery(owner, hashOfRecoveryCode(code), change)) return true;
      throw codeRefused();
    }
    const step = this.#stepOf(guess.kept, owner.userId, code, change.nowMs);
    if (step === null || !(await this.#store.accept(owner.userId, step))) throw codeRefused();
    return true;
  }

  /** @throws SECOND_FACTOR_UNKNOWN */
  async remove(owner: Owner, change: Change): Promise<void> {
    if (!(await this.#store.remove(owner, change))) throw factorUnknown(owner.name);
  }

  #stepOf(kept: KeptFactor, userId: number, code: string, nowMs: number): number | null {
    const secret = "plain" in kept ? kept.plain : this.#keys.open(kept, factorPlace(userId));
    return stepOf(secret, code.trim(), nowMs);
  }
}
