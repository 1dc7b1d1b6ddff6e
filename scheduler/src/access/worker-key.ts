import { createHash, randomBytes } from "node:crypto";

/** `ck_12_SECRET`: the number finds the key, the secret proves it. 256 bits of chance need no slow hash. */
const shape = /^ck_(\d{1,9})_([A-Za-z0-9_-]{43})$/;

export const makeSecret = (): string => randomBytes(32).toString("base64url");
export const hashOfSecret = (secret: string): Buffer => createHash("sha256").update(secret).digest();
export const keyText = (keyId: number, secret: string): string => `ck_${keyId}_${secret}`;

export function parseKey(text: string): { keyId: number; secret: string } | null {
  const [, id, secret] = shape.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { keyId: Number(id), secret };
}

const tokenShape = /^ct_(\d{1,9})_([A-Za-z0-9_-]{43})$/;

/** A token of the API, of the same making. */
export const tokenText = (tokenId: number, secret: string): string => `ct_${tokenId}_${secret}`;

export function parseToken(text: string): { keyId: number; secret: string } | null {
  const [, id, secret] = tokenShape.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { keyId: Number(id), secret };
}
