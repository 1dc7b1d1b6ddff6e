/** Verifies that a request of a hook comes from an owner of its secret. Comparisons take the same time wherever signatures differ. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import { defaultTolerance, type HookContent, type HookScheme } from "./hook.ts";

export interface SignedRequest {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body as it was received. */
  raw: Buffer;
}

/** The time in seconds that the request claims, which its signature covers, and whether one of its signatures is valid. */
interface Found {
  valid: boolean;
  seconds?: number;
}

/** The longest list of signatures in one header that is examined. */
const mostSignatures = 10;

const headerOf = ({ headers }: SignedRequest, name: string): string => [headers[name] ?? ""].flat().join(",");

const hmacOf = (secret: string | Buffer, ...parts: (string | Buffer)[]): Buffer => {
  const hmac = createHmac("sha256", secret);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
};

const equal = (wanted: Buffer, given: Buffer): boolean =>
  wanted.length === given.length && timingSafeEqual(wanted, given);

const verifiers: Readonly<Record<HookScheme, (secret: string, request: SignedRequest) => Found>> = {
  github: (secret, request) => {
    const given = /^sha256=([0-9a-f]{64})$/i.exec(headerOf(request, "x-hub-signature-256"))?.[1] ?? "";
    return { valid: equal(hmacOf(secret, request.raw), Buffer.from(given, "hex")) };
  },
  stripe: (secret, request) => {
    const parts = headerOf(request, "stripe-signature")
      .split(",")
      .map((part) => part.trim().split("="));
    const time = parts.find(([name]) => name === "t")?.[1] ?? "";
    const wanted = hmacOf(secret, `${time}.`, request.raw);
    const given = parts.filter(([name]) => name === "v1").slice(0, mostSignatures);
    return timed(
      time,
      given.some(([, text = ""]) => equal(wanted, Buffer.from(text, "hex"))),
    );
  },
  standard: (secret, request) => {
    const [id, time] = [headerOf(request, "webhook-id"), headerOf(request, "webhook-timestamp")];
    const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : secret;
    const wanted = hmacOf(key, `${id}.${time}.`, request.raw);
    const given = headerOf(request, "webhook-signature").split(" ").slice(0, mostSignatures);
    return timed(
      time,
      given.some((text) => text.startsWith("v1,") && equal(wanted, Buffer.from(text.slice("v1,".length), "base64"))),
    );
  },
  bearer: (secret, request) => {
    // Not compared: with the body's HMAC, an answer takes as long as by the other schemes, and as that for a hook that does not exist.
    hmacOf(secret, request.raw);
    const given = /^Bearer +(.+)$/i.exec(headerOf(request, "authorization"))?.[1] ?? "";
    const hashOf = (text: string) => createHash("sha256").update(text).digest();
    return { valid: equal(hashOf(secret), hashOf(given)) };
  },
};

/** @param valid false also if the time is not a number, because a signature may cover any text */
const timed = (time: string, valid: boolean): Found => ({
  valid: valid && /^\d{1,12}$/.test(time),
  seconds: Number(time),
});

/**
 * Checks the signature, and by the schemes that sign a time also its age.
 * @throws HOOK_REFUSED
 */
export function verifyRequest(
  { scheme, tolerance = defaultTolerance }: Pick<HookContent, "scheme" | "tolerance">,
  secret: string,
  request: SignedRequest,
  nowMs: number,
): void {
  const { valid, seconds } = verifiers[scheme](secret, request);
  if (!valid) throw hookRefused();
  if (seconds === undefined) return;
  const offMs = Math.abs(nowMs - seconds * 1_000);
  if (offMs <= parseDuration(tolerance, "tolerance", 0)) return;
  // Only an owner of the secret gets this far, so the reason may be given.
  throw new CarillonError("HOOK_REFUSED", `the request was signed ${Math.round(offMs / 1_000)} s away from now`, {
    hint: "Is it sent again as it was, or is a clock wrong? The hook's tolerance can be changed.",
  });
}

/** The same error for a hook that does not exist, one that is off, and a wrong signature, so that strangers cannot tell them apart. */
export const hookRefused = (): CarillonError =>
  new CarillonError("HOOK_REFUSED", "there is no such hook, or the request is not signed by its secret", {
    hint: "Compare the URL, the scheme and the secret of the sender with carillon hooks show NAME.",
  });
