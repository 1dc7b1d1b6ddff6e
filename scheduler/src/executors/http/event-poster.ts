import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { type EventWebhookOptions, isSyslog } from "../../settings/event-webhooks.ts";
import { AllowList } from "./allow-list.ts";
import { caller } from "./notice.ts";
import { signatureHeaders } from "./signature.ts";
import { type Resolve, systemResolve } from "./target.ts";

/** The time in ms within which a receiver must respond to one request. */
export const patienceMs = 30_000;

/**
 * Checks the hosts and the address lists of all event webhooks when the process starts, so that later posts cannot fail on them.
 * @throws OPTION_INVALID
 */
export function checkEventAddresses(webhooks: Readonly<Record<string, EventWebhookOptions>>): void {
  for (const [name, { url, allow = [] }] of Object.entries(webhooks)) {
    if (!isSyslog(url)) new AllowList([new URL(url).host], `webhooks.${name}.url`);
    new AllowList(allow, `webhooks.${name}.allow`);
  }
}

/**
 * Returns a function that posts events to a URL in CloudEvents' structured mode, signed by RFC 9421 if there is a secret. A
 * redirect counts as failure.
 */
export function eventPoster(
  { url, secret, allow = [] }: EventWebhookOptions,
  clock: Clock,
  resolve: Resolve = systemResolve,
) {
  const to = new URL(url);
  const call = caller([to.host], allow, clock, resolve);
  /** @throws HTTP_NOT_ALLOWED, HTTP_FAILED, HTTP_REFUSED; the signal's reason */
  return async (id: string, content: object, signal: AbortSignal): Promise<void> => {
    const body = Buffer.from(JSON.stringify(content));
    const seconds = Math.floor(clock.wall() / 1_000);
    const told = { "carillon-event": id };
    const headers = {
      "content-type": "application/cloudevents+json; charset=utf-8",
      ...told,
      ...(secret === undefined
        ? {}
        : signatureHeaders({ method: "POST", url: to, body }, told, { secret, keyId: "events" }, seconds)),
    };
    const { status } = await call({ method: "POST", to, headers, body }, signal);
    if (status >= 200 && status < 300) return;
    throw new CarillonError("HTTP_REFUSED", `${to.host} answered ${status}`, {
      hint: "Look at the receiver: it must answer 2xx.",
    });
  };
}
