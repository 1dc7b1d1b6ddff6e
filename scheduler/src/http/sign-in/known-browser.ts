import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** How long a browser counts as known after a sign-in, unless the password is replaced. */
export const knownBrowserMs = 180 * 86_400_000;
export const knownBrowserShape = /^[\w-]{22}\.[\w-]{43}$/;

/**
 * A browser that has signed in keeps a proof of that, so that strangers who guess passwords of the same account do not delay it. The proof
 * does not replace the password. Its HMAC key is the password's hash: every node can check the proof, nothing is stored, and the proof
 * becomes invalid when the password changes.
 */
const proofOf = (id: string, account: string, passwordHash: string) =>
  createHmac("sha256", passwordHash).update(`known browser\n${id}\n${account}`).digest();

export function makeKnownBrowser(account: string, passwordHash: string): string {
  const id = randomBytes(16).toString("base64url");
  return `${id}.${proofOf(id, account, passwordHash).toString("base64url")}`;
}

/** @returns the browser's id if the proof is valid, else null */
export function knownBrowser(cookie: string | null, account: string, passwordHash: string | null): string | null {
  const [id = "", proof = ""] = (cookie ?? "").split(".");
  if (passwordHash === null || id === "") return null;
  const [given, wanted] = [Buffer.from(proof, "base64url"), proofOf(id, account, passwordHash)];
  return given.length === wanted.length && timingSafeEqual(given, wanted) ? id : null;
}
