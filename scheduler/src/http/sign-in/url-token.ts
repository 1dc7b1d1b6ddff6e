import type { FastifyRequest } from "fastify";
import { type Noun, type Principal, principalText } from "../../access/access.ts";
import { CarillonError } from "../../base/errors.ts";

/** Returns the token in a request's query; undefined if there is none. */
export function urlTokenOf({ query }: FastifyRequest): string | undefined {
  const { token } = query as { token?: unknown };
  return typeof token === "string" ? token : undefined;
}

/**
 * Checks that a token in a URL can do nothing but read this kind of data, because proxies and clients keep URLs in logs and histories.
 * @throws ACCESS_DENIED
 */
export function checkUrlToken(who: Principal, noun: Noun): void {
  const scope = `${noun}:read`;
  if (who.scopes?.length === 1 && who.scopes[0] === scope) return;
  throw new CarillonError(
    "ACCESS_DENIED",
    `${principalText(who)} is not for ${scope} alone, so it cannot be in a URL`,
    {
      hint: `Make a token with this scope alone: carillon tokens create NAME --user USER --role viewer --scope ${scope}.`,
    },
  );
}
