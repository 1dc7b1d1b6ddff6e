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

/** A code, or "" if none was given, and the client's address. */
export interface ShownCode {
  code: string;
  address: string;
}

/** The credential of a request; see `Principals`. */
interface Shown {
  who: Principal;
  isProven: boolean;
  /** The secret of the sign-in's cookie; null: the request has a token. */
  cookie: string | null;
}

export interface SecondFactorSettings {
  secretKeys: SecretKeys;
  signIns: { factorOf: FactorChoice };
  security: SecurityLog;
}

/**
 * Creates and checks second factors, and logs each refused code.
 * state × event, for one user: none –begin→ begun (another begin replaces it); begun –a right code→ confirmed: from then on each sign-in by
 * password needs a code; confirmed –remove, by its user with a code or by an admin→ none. Of two concurrent confirmations one is refused.
 * Without the key that sealed the secret a code cannot be checked, and the sign-in fails with SECRET_KEY_MISSING; recovery codes need no
 * key.
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

  /** True if this user signed in with a password alone and must add a second factor. Tokens need none. */
  isLackedBy({ who, isProven, cookie }: Shown): boolean {
    if (cookie === null || isProven) return false;
    return this.#required === "everyone" || (this.#required === "admins" && highestRole(who) === "admin");
  }

  /** A temporary password must be replaced before a second factor is added. @throws SECOND_FACTOR_REQUIRED */
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

  /** @throws SECOND_FACTOR_TAKEN */
  async begin({ userId, name }: Owner, nowMs: number): Promise<{ secret: string; uri: string }> {
    const secret = makeFactorSecret();
    const kept: KeptFactor = this.#keys.some ? this.#keys.seal(secret, factorPlace(userId)) : { plain: secret };
    await this.#store.begin(userId, kept, nowMs);
    return { secret, uri: factorUri(secret, name) };
  }

  /**
   * @param keeping the hash of the sign-in that stays valid
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
    // The second factor was removed meanwhile.
    if (!guess?.isConfirmed) return false;
    if (!isTotpCode(given)) {
      if (await this.#store.acceptRecovery(owner, hashOfRecoveryCode(given), change)) return true;
      throw this.#refused(owner, shown);
    }
    const step = this.#stepOf(guess.kept, owner.userId, given, change.nowMs);
    if (step === null || !(await this.#store.accept(owner.userId, step))) throw this.#refused(owner, shown);
    return true;
  }

  /** @throws SECOND_FACTOR_UNKNOWN */
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
