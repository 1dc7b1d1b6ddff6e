import { createHash, randomBytes } from "node:crypto";
import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";

/** A worker key: `ck_NUMBER_SECRET`. The number identifies the key's row. The secret has 256 random bits, so a fast hash is safe. */
const shape = /^ck_(\d{1,9})_([A-Za-z0-9_-]{43})$/;

export const makeSecret = (): string => randomBytes(32).toString("base64url");
export const hashOfSecret = (secret: string): Buffer => createHash("sha256").update(secret).digest();
export const keyText = (keyId: number, secret: string): string => `ck_${keyId}_${secret}`;

export function parseKey(text: string): { keyId: number; secret: string } | null {
  const [, id, secret] = shape.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { keyId: Number(id), secret };
}

const longestKeyMs = 3_660 * 86_400_000;

/** Returns the time in epoch ms at which a new key expires; null: never. @throws DURATION_INVALID, OPTION_INVALID */
export function keyEndMs(expiresIn: Duration | undefined, nowMs: number): number | null {
  if (expiresIn === undefined) return null;
  const spanMs = parseDuration(expiresIn, "expiresIn", 1);
  if (spanMs <= longestKeyMs) return nowMs + spanMs;
  throw new CarillonError("OPTION_INVALID", "expiresIn is longer than ten years", {
    path: "expiresIn",
    hint: "Leave it out for a key that does not expire.",
  });
}

const tokenShape = /^ct_(\d{1,9})_([A-Za-z0-9_-]{43})$/;

/** Returns the text of an API token, `ct_NUMBER_SECRET`, which has the same form as a worker key. */
export const tokenText = (tokenId: number, secret: string): string => `ct_${tokenId}_${secret}`;

export function parseToken(text: string): { keyId: number; secret: string } | null {
  const [, id, secret] = tokenShape.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { keyId: Number(id), secret };
}
