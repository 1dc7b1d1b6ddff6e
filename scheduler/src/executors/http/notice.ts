import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { version } from "../../base/version.ts";
import type { PingSettings } from "../../settings/alarms/alarms.ts";
import { type ChannelOptions, postsTo, type WebhookChannel } from "../../settings/alarms/channels.ts";
import { AllowList } from "./allow-list.ts";
import { retryAfterMs, send } from "./request.ts";
import { legacySignature, signatureHeaders } from "./signature.ts";
import { type Resolve, systemResolve, targetOf } from "./target.ts";

/** The hint if the host is configured, but resolves to an address that is not allowed. */
const allowHint =
  "Where it is meant, add that address to `allow` beside the URL, in alarms.channels, alarms.ping or webhooks.";

const allowOf = (channel: ChannelOptions): string[] => ("allow" in channel && channel.allow) || [];

/**
 * Checks the hosts and the address lists of all channels that post by HTTP, and of the ping, when the node starts, so that later posts
 * cannot fail on them.
 * @throws OPTION_INVALID
 */
export function checkWebhooks(channels: Record<string, ChannelOptions>, ping: PingSettings | null = null): void {
  if (ping) {
    new AllowList([new URL(ping.url).host], "alarms.ping.url");
    new AllowList(ping.allow, "alarms.ping.allow");
  }
  for (const [name, channel] of Object.entries(channels)) {
    const to = postsTo(channel);
    if (to === null) continue;
    new AllowList([to.host], `alarms.channels.${name}`);
    new AllowList(allowOf(channel), `alarms.channels.${name}.allow`);
  }
}

export interface PostAnswer {
  status: number;
  text: string;
  /** How long the receiver asks the client to pause, in ms; undefined if the answer does not say. */
  retryAfterMs: number | undefined;
}

interface Called {
  method: "GET" | "POST";
  to: URL;
  headers?: Record<string, string>;
  body: Buffer | null;
}

/** Returns a function that calls hosts from the process's own configuration, with the same address checks as for HTTP tasks. */
export function caller(own: readonly string[], allow: readonly string[], clock: Clock, resolve: Resolve) {
  const allowed = new AllowList([...own, ...allow]);
  /** @throws HTTP_NOT_ALLOWED, HTTP_FAILED; the signal's reason */
  return async ({ method, to, headers = {}, body }: Called, signal: AbortSignal): Promise<PostAnswer> => {
    const sent = { "user-agent": `carillon/${version}`, ...headers };
    const target = await targetOf(to, allowed, resolve, { shown: to.host, hint: allowHint });
    const answer = await send(target, { method, headers: sent, body }, limits.httpBodyBytes, signal);
    const afterMs = retryAfterMs(answer.headers["retry-after"], clock.wall());
    return { status: answer.status, text: answer.body.toString("utf8"), retryAfterMs: afterMs };
  };
}

/**
 * Returns a function that posts JSON to a channel's host. Errors contain only the host: every viewer can read errors, and a URL's path may
 * be all that is needed to post.
 * @param channel a channel that `checkWebhooks` has checked
 */
export function channelPoster(channel: ChannelOptions, clock: Clock, resolve: Resolve = systemResolve) {
  const own = postsTo(channel);
  const call = caller(own === null ? [] : [own.host], allowOf(channel), clock, resolve);
  return (to: URL, headers: Record<string, string>, body: Buffer, signal: AbortSignal): Promise<PostAnswer> =>
    call({ method: "POST", to, headers: { "content-type": "application/json", ...headers }, body }, signal);
}

/** Returns a function that calls the ping's URL, which `checkWebhooks` has checked. */
export function pingCaller({ url, allow }: PingSettings, clock: Clock, resolve: Resolve = systemResolve) {
  const to = new URL(url);
  const call = caller([to.host], allow, clock, resolve);
  /** @throws HTTP_NOT_ALLOWED, HTTP_FAILED, HTTP_REFUSED; the signal's reason */
  return async (signal: AbortSignal): Promise<void> => {
    const { status } = await call({ method: "GET", to, body: null }, signal);
    if (status >= 200 && status < 300) return;
    throw new CarillonError("HTTP_REFUSED", `${to.host} answered ${status}`, {
      hint: "Look at alarms.ping.url: it must answer 2xx.",
    });
  };
}

/**
 * Returns a function that posts a notice as JSON to a webhook, signed like HTTP tasks if the channel has a secret. A redirect counts as a
 * failure.
 * @param channel a channel that `checkWebhooks` has checked
 */
export function noticePoster(channel: WebhookChannel, clock: Clock, resolve: Resolve = systemResolve) {
  const { webhook, secret } = channel;
  const to = new URL(webhook);
  const post = channelPoster(channel, clock, resolve);
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
      "carillon-notice": id,
      "carillon-timestamp": String(seconds),
      ...(secret === undefined ? {} : signatures(secret, id, body, seconds)),
    };
    const { status, retryAfterMs: afterMs } = await post(to, headers, body, signal);
    if (status >= 200 && status < 300) return;
    throw new CarillonError("HTTP_REFUSED", `${to.host} answered ${status}`, {
      hint: "Look at the receiver: it must answer 2xx.",
      retryAfterMs: afterMs,
    });
  };
}
