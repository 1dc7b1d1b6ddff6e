import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { version } from "../../base/version.ts";
import type { ChannelOptions, WebhookChannel } from "../../settings/alarms.ts";
import { AllowList } from "./allow-list.ts";
import { send } from "./request.ts";
import { legacySignature, signatureHeaders } from "./signature.ts";
import { type Resolve, systemResolve, targetOf } from "./target.ts";

/** The hint if the host is allowed, but an address that it resolves to is not. */
const allowHint = "Where it is meant, add that address to `allow` of the webhook's channel (alarms.channels).";

/**
 * Checks the options of all webhooks when the node starts, so that posting cannot fail on them later.
 * @throws OPTION_INVALID
 */
export function checkWebhooks(channels: Record<string, ChannelOptions>): void {
  for (const [name, channel] of Object.entries(channels)) {
    if (!("webhook" in channel)) continue;
    new AllowList([new URL(channel.webhook).host], `alarms.channels.${name}.webhook`);
    new AllowList(channel.allow ?? [], `alarms.channels.${name}.allow`);
  }
}

/**
 * Posts a notice as JSON to one URL of the process's own configuration, with the same address checks and signatures as HTTP tasks. A
 * redirect counts as a failure. Errors name only the host, because every viewer can read them, and knowing the path may be enough to post
 * there.
 * @param channel a channel that checkWebhooks has checked
 */
export function noticePoster(
  { webhook, secret, allow = [] }: WebhookChannel,
  clock: Clock,
  resolve: Resolve = systemResolve,
) {
  const to = new URL(webhook);
  const allowed = new AllowList([to.host, ...allow]);
  const signatures = (secret: string, id: string, body: Buffer, seconds: number) => ({
    ...signatureHeaders(
      { method: "POST", url: to, body },
      { "carillon-notice": id },
      { secret, keyId: "alarms" },
      seconds,
    ),
    "carillon-signature": `v1=${legacySignature(secret, [String(seconds), id], body)}`,
  });
  /** @throws HTTP_NOT_ALLOWED, HTTP_FAILED, HTTP_REFUSED; the signal's reason */
  return async (id: string, content: unknown, signal: AbortSignal): Promise<void> => {
    const body = Buffer.from(JSON.stringify(content));
    const seconds = Math.floor(clock.wall() / 1_000);
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "user-agent": `carillon/${version}`,
      "carillon-notice": id,
      "carillon-timestamp": String(seconds),
      ...(secret === undefined ? {} : signatures(secret, id, body, seconds)),
    };
    const target = await targetOf(to, allowed, resolve, { shown: to.host, hint: allowHint });
    const { status } = await send(target, { method: "POST", headers, body }, limits.httpBodyBytes, signal);
    if (status >= 200 && status < 300) return;
    throw new CarillonError("HTTP_REFUSED", `${to.host} answered ${status}`, {
      hint: "Look at the receiver: it must answer 2xx.",
    });
  };
}
