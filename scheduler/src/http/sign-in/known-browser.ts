import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** How long a browser counts as known after a sign-in, in ms; it ends earlier if the password's hash changes. */
export const knownBrowserMs = 180 * 86_400_000;
export const knownBrowserShape = /^[\w-]{22}\.[\w-]{43}$/;

/**
 * Computes the proof that a browser has signed in before. The browser stores the proof in a cookie, so that other clients that guess
 * passwords for the same account do not delay its sign-in. The proof does not replace the password. Its HMAC key is the password's hash:
 * every node can verify it, nothing is stored on the server, and a changed password invalidates it.
 */
const proofOf = (id: string, account: string, passwordHash: string) =>
  createHmac("sha256", passwordHash).update(`known browser\n${id}\n${account}`).digest();

export function makeKnownBrowser(account: string, passwordHash: string): string {
  const id = randomBytes(16).toString("base64url");
  return `${id}.${proofOf(id, account, passwordHash).toString("base64url")}`;
}

/** Verifies the proof in a cookie. @returns the browser's id; null if the proof is invalid */
export function knownBrowser(cookie: string | null, account: string, passwordHash: string | null): string | null {
  const [id = "", proof = ""] = (cookie ?? "").split(".");
  if (passwordHash === null || id === "") return null;
  const [given, wanted] = [Buffer.from(proof, "base64url"), proofOf(id, account, passwordHash)];
  return given.length === wanted.length && timingSafeEqual(given, wanted) ? id : null;
}
