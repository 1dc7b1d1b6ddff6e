/** Time-based one-time codes (RFC 6238) as second factor, beside a password. See docs/sign-in.md. */
import { createHash } from "node:crypto";
import { Secret, TOTP } from "otpauth";
import { CarillonError } from "../base/errors.ts";
import { madePassword } from "./password.ts";

/** The parameters that every authenticator app supports. */
const kind = { algorithm: "SHA1", digits: 6, period: 30 } as const;
const issuer = "Carillon";
const secretBytes = 20;
/** Codes of the step before and the step after are accepted too: clocks differ, and typing takes a while. */
const stepsBeside = 1;
const recoveryCodes = 10;

/** A new secret in base32. */
export const makeFactorSecret = (): string => new Secret({ size: secretBytes }).base32;

const totpOf = (secret: string, user: string) =>
  new TOTP({ ...kind, issuer, label: user, secret: Secret.fromBase32(secret) });

/** The URI that an authenticator app reads, most often from a QR code. */
export const factorUri = (secret: string, user: string): string => totpOf(secret, user).toString();

/** @returns the time step that the code belongs to; null: the code matches no step near this time */
export function stepOf(secret: string, code: string, nowMs: number): number | null {
  const delta = totpOf(secret, "").validate({ token: code, timestamp: nowMs, window: stepsBeside });
  return delta === null ? null : Math.floor(nowMs / 1_000 / kind.period) + delta;
}

export const isTotpCode = (code: string): boolean => /^\d{6}$/.test(code);

/** Each code has about 119 bits of randomness, so an unsalted hash of it is safe to store. */
export const makeRecoveryCodes = (): string[] => Array.from({ length: recoveryCodes }, madePassword);

/** Accepts the code in capitals or with spaces around it. */
export const hashOfRecoveryCode = (code: string): Buffer =>
  createHash("sha256").update(code.trim().toLowerCase()).digest();

export const codeRefused = () =>
  new CarillonError("CODE_REFUSED", "the code is wrong, has expired or was used before", {
    hint: "Wait for the next code, and compare the clock of the device that makes it. A recovery code works once.",
  });
