/** Time-based one-time codes (RFC 6238) as second factor in addition to a password. See docs/access/sign-in.md. */
import { createHash } from "node:crypto";
import { Secret, TOTP } from "otpauth";
import { CarillonError } from "../base/errors.ts";
import { madePassword } from "./password.ts";

/** Authenticator apps generally support these parameters; some support no others. */
const kind = { algorithm: "SHA1", digits: 6, period: 30 } as const;
const issuer = "Carillon";
const secretBytes = 20;
/** The code of one step earlier or later is accepted too, because clocks differ and typing takes time. */
const stepsBeside = 1;
const recoveryCodes = 10;

/** Generates a new secret, in base32. */
export const makeFactorSecret = (): string => new Secret({ size: secretBytes }).base32;

const totpOf = (secret: string, user: string) =>
  new TOTP({ ...kind, issuer, label: user, secret: Secret.fromBase32(secret) });

/** Returns the URI that an authenticator app reads, usually from a QR code. */
export const factorUri = (secret: string, user: string): string => totpOf(secret, user).toString();

/** @returns the time step of a valid code; null: the code is not that of this step, the one before or the one after */
export function stepOf(secret: string, code: string, nowMs: number): number | null {
  const delta = totpOf(secret, "").validate({ token: code, timestamp: nowMs, window: stepsBeside });
  return delta === null ? null : Math.floor(nowMs / 1_000 / kind.period) + delta;
}

export const isTotpCode = (code: string): boolean => /^\d{6}$/.test(code);

/** Generates recovery codes. Each has about 119 random bits, so its unsalted hash is safe to store. */
export const makeRecoveryCodes = (): string[] => Array.from({ length: recoveryCodes }, madePassword);

/** Hashes a recovery code; ignores case and spaces around it. */
export const hashOfRecoveryCode = (code: string): Buffer =>
  createHash("sha256").update(code.trim().toLowerCase()).digest();

export const codeRefused = () =>
  new CarillonError("CODE_REFUSED", "the code is wrong, has expired or was used before", {
    hint: "Wait for the next code, and compare the clock of the device that makes it. A recovery code works once.",
  });
