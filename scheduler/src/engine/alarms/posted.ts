/** Posts messages to a service in its format, and reads from the answer whether the service accepted the message. */
import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { type ChannelOptions, masked } from "../../settings/alarms/channels.ts";
import type { Format, Notice } from "./formats/format.ts";

export type Post = (
  to: URL,
  headers: Record<string, string>,
  body: Buffer,
  signal: AbortSignal,
) => Promise<{ status: number; text: string; retryAfterMs: number | undefined }>;

const longestReason = 300;

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Some services answer with plain text, and proxies with an HTML page.
    return undefined;
  }
}

export function postedBy(format: Format, channel: ChannelOptions, post: Post, clock: Clock) {
  /** @throws HTTP_NOT_ALLOWED, HTTP_FAILED, HTTP_REFUSED; the signal's reason */
  return async (notice: Notice, signal: AbortSignal): Promise<void> => {
    const { url, headers = {}, body } = format.sending(notice, clock.wall());
    const to = new URL(url);
    const { status, text, retryAfterMs } = await post(to, headers, Buffer.from(JSON.stringify(body)), signal);
    const refusal = format.refusal?.({ status, text, json: jsonOf(text) }) ?? null;
    if (status >= 200 && status < 300 && refusal === null) return;
    const why = masked(refusal?.why ?? text, channel)
      .trim()
      .slice(0, longestReason);
    throw new CarillonError("HTTP_REFUSED", `${to.host} answered ${status}${why === "" ? "" : `: ${why}`}`, {
      hint: "Look at the channel's options, and at the limits and settings of the service.",
      retryAfterMs: refusal?.afterMs ?? retryAfterMs,
    });
  };
}
