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
import {
  type FactorChoice,
  type FactorState,
  factorPlace,
  factorUnknown,
  type KeptFactor,
  type SecondFactorStore,
} from "../../access/second-factor-store.ts";
import type { SecretKeys } from "../../access/secrets/secret-keys.ts";
import type { Change } from "../../base/change.ts";
import { CarillonError } from "../../base/errors.ts";
import type { SecurityLog } from "./security-log.ts";

type Owner = Pick<User, "userId" | "name">;

/** A code ("" if none was given) and the client's address. */
export interface ShownCode {
  code: string;
  address: string;
}

/** The authenticated caller of a request; see `Principals`. */
interface Shown {
  who: Principal;
  isProven: boolean;
  /** The secret in the cookie of the sign-in; null if the request has a token. */
  cookie: string | null;
}

export interface SecondFactorSettings {
  secretKeys: SecretKeys;
  signIns: { factorOf: FactorChoice };
  security: SecurityLog;
}

/**
 * Creates and checks second factors (TOTP), and logs refused codes. States for one user: *none* → *begun* (beginning again replaces it) →
 * *confirmed* by a correct code. From then on, each sign-in with a password needs a code, until the user (with a code) or an admin removes
 * the second factor. One of two concurrent confirmations is refused. If the key that encrypts the factor's secret is missing, codes cannot
 * be checked, and the sign-in fails with SECRET_KEY_MISSING; recovery codes work without that key.
 */
export class SecondFactors {
  readonly #store: SecondFactorStore;
  readonly #keys: SecretKeys;
  /** Which users must have a second factor. */
  readonly #required: FactorChoice;
  readonly #security: SecurityLog;

  constructor(store: SecondFactorStore, { secretKeys, signIns, security }: SecondFactorSettings) {
    this.#store = store;
    this.#keys = secretKeys;
    this.#required = signIns.factorOf;
    this.#security = security;
  }

  /** True if the user signed in with only a password although a second factor is required. Tokens need none. */
  isLackedBy({ who, isProven, cookie }: Shown): boolean {
    if (cookie === null || isProven) return false;
    return this.#required === "everyone" || (this.#required === "admins" && highestRole(who) === "admin");
  }

  /**
   * Refuses a caller without a required second factor. A caller with a temporary password must replace the password first, and is not
   * refused here.
   * @throws SECOND_FACTOR_REQUIRED
   */
  demand(shown: Shown): void {
    const { user, temporary } = shown.who;
    if (temporary || !this.isLackedBy(shown)) return;
    throw new CarillonError("SECOND_FACTOR_REQUIRED", `${user} must have a second factor, and has none yet`, {
      hint: "Make one in the console, or by POST /v1/me/second-factor.",
    });
  }

  find(userId: number): Promise<FactorState | null> {
    return this.#store.find(userId);
  }

  /** Creates a second factor that is not confirmed yet. @throws SECOND_FACTOR_TAKEN if the user has a confirmed one */
  async begin({ userId, name }: Owner, nowMs: number): Promise<{ secret: string; uri: string }> {
    const secret = makeFactorSecret();
    const kept: KeptFactor = this.#keys.some ? this.#keys.seal(secret, factorPlace(userId)) : { plain: secret };
    await this.#store.begin(userId, kept, nowMs);
    return { secret, uri: factorUri(secret, name) };
  }

  /**
   * Confirms the second factor by a code.
   * @param keeping the hash of the caller's sign-in, which remains valid
   * @returns recovery codes, of which only hashes are stored
   * @throws CODE_REFUSED, SECOND_FACTOR_UNKNOWN, TOO_MANY_ATTEMPTS, SECRET_KEY_MISSING
   */
  async confirm(owner: Owner, shown: ShownCode, keeping: Buffer | null, change: Change): Promise<string[]> {
    const guess = await this.#store.guess(owner.userId, change.nowMs);
    if (!guess || guess.isConfirmed) throw factorUnknown(owner.name);
    const step = this.#stepOf(guess.kept, owner.userId, shown.code, change.nowMs);
    const codes = makeRecoveryCodes();
    if (step === null || !(await this.#store.confirm(owner, step, codes.map(hashOfRecoveryCode), keeping, change)))
      throw this.#refused(owner, shown);
    return codes;
  }

  /**
   * Checks the code of a user whose password was right.
   * @returns true if the user has a second factor
   * @throws SECOND_FACTOR_NEEDED, CODE_REFUSED, TOO_MANY_ATTEMPTS, SECRET_KEY_MISSING
   */
  async judge(owner: Owner, { code, address }: ShownCode, change: Change): Promise<boolean> {
    if ((await this.#store.find(owner.userId)) === null) return false;
    const given = code.trim();
    if (given === "")
      throw new CarillonError("SECOND_FACTOR_NEEDED", "the password is right, and a code is needed beside it", {
        hint: "Give the code that the authenticator app shows, or a recovery code.",
      });
    const shown = { code: given, address };
    const guess = await this.#store.guess(owner.userId, change.nowMs);
    // The second factor has been removed meanwhile.
    if (!guess?.isConfirmed) return false;
    if (!isTotpCode(given)) {
      if (await this.#store.acceptRecovery(owner, hashOfRecoveryCode(given), change)) return true;
      throw this.#refused(owner, shown);
    }
    const step = this.#stepOf(guess.kept, owner.userId, given, change.nowMs);
    if (step === null || !(await this.#store.accept(owner.userId, step))) throw this.#refused(owner, shown);
    return true;
  }

  /** Removes the user's second factor. @throws SECOND_FACTOR_UNKNOWN if there is none */
  async remove(owner: Owner, change: Change): Promise<void> {
    if (!(await this.#store.remove(owner, change))) throw factorUnknown(owner.name);
  }

  #refused({ name }: Owner, { address }: ShownCode): CarillonError {
    this.#security.refused("CODE_REFUSED", { address, user: name });
    return codeRefused();
  }

  #stepOf(kept: KeptFactor, userId: number, code: string, nowMs: number): number | null {
    const secret = "plain" in kept ? kept.plain : this.#keys.open(kept, factorPlace(userId));
    return stepOf(secret, code.trim(), nowMs);
  }
}
