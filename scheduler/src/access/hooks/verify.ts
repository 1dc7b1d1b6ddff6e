/** Verifies that the sender of a hook's request knows the hook's secret. Signatures are compared in constant time. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import { defaultTolerance, type HookContent, type HookScheme } from "./hook.ts";

export interface SignedRequest {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body as it was received. */
  raw: Buffer;
}

/** `valid`: one of the request's signatures is valid. `seconds`: the signed time, if the scheme signs one. */
interface Found {
  valid: boolean;
  seconds?: number;
}

/** Only this number of signatures in one header are examined. */
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
    // The HMAC is not used. It makes this scheme take as long as the others, and as long as the answer for a hook that does not exist.
    hmacOf(secret, request.raw);
    const given = /^Bearer +(.+)$/i.exec(headerOf(request, "authorization"))?.[1] ?? "";
    const hashOf = (text: string) => createHash("sha256").update(text).digest();
    return { valid: equal(hashOf(secret), hashOf(given)) };
  },
};

/** A signed text that is not a number of seconds counts as invalid. */
const timed = (time: string, valid: boolean): Found => ({
  valid: valid && /^\d{1,12}$/.test(time),
  seconds: Number(time),
});

/**
 * Checks the signature and, if the scheme signs a time, the time's distance from now.
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

/** The error is the same for an unknown hook, a disabled hook and a wrong signature, so it does not reveal which hooks exist. */
export const hookRefused = (): CarillonError =>
  new CarillonError("HOOK_REFUSED", "there is no such hook, or the request is not signed by its secret", {
    hint: "Compare the URL, the scheme and the secret of the sender with carillon hooks show NAME.",
  });
