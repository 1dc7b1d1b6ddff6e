import type { Clock } from "../../base/clock.ts";
import { CarillonError, isCarillonError } from "../../base/errors.ts";
import { type AlarmSettings, noAlarms, type PingSettings } from "../../settings/alarms/alarms.ts";
import { asKind, type ChannelOptions, masked, type WebhookChannel } from "../../settings/alarms/channels.ts";
import type { Notice } from "./formats/format.ts";
import { contentOf, noticeOf, noticeOptions } from "./notices.ts";
import { type CallPing, Ping } from "./ping.ts";
import type { Post } from "./posted.ts";
import { Alarms, type AlarmsOptions, type Deliver } from "./watch.ts";

/** The functions that deliver messages. */
export interface Senders {
  /** Returns a function that posts JSON to a webhook, signed if the channel has a secret. */
  webhook(channel: WebhookChannel, clock: Clock): (id: string, content: unknown, signal: AbortSignal) => Promise<void>;
  /** Returns a function that posts to the channel's host, restricted by the same host checks as HTTP tasks. */
  post(channel: ChannelOptions, clock: Clock): Post;
  /** Runs a program with this text on its standard input. Rejects if its exit code is not 0. */
  run(argv: readonly string[], stdin: string, signal: AbortSignal, clock: Clock): Promise<void>;
  /** Returns a function that calls the URL of the ping (a dead man's switch). */
  ping(settings: PingSettings, clock: Clock): CallPing;
}

type Send = (notice: Notice, signal: AbortSignal) => Promise<void>;

/** Starts watching for alarms. If `settings` is null, the process has no channels, and only evaluates the stored rules while it leads. */
export async function watchAlarms(
  shared: Omit<AlarmsOptions, "settings" | "channels">,
  settings: AlarmSettings | null,
  senders: Senders,
): Promise<Alarms> {
  if (settings === null) return new Alarms({ ...shared, settings: noAlarms(), channels: {} });
  const channels = await channelsOf(settings, senders, shared.clock);
  const call: CallPing = async (signal) => {
    if (settings.ping) await senders.ping(settings.ping, shared.clock)(signal);
  };
  return new Alarms({ ...shared, settings, channels, ping: new Ping({ ...shared, settings, call }) });
}

export async function channelsOf(
  settings: AlarmSettings,
  senders: Senders,
  clock: Clock,
): Promise<Record<string, Deliver>> {
  const made = Object.entries(settings.channels).map(async ([name, channel]): Promise<[string, Deliver]> => {
    const send = await sendOf(channel, senders, clock);
    const options = noticeOptions(channel, settings);
    const deliver: Deliver = async (id, message, signal) => {
      try {
        await send(noticeOf(id, message, options), signal);
      } catch (error) {
        throw concealed(error, channel);
      }
    };
    return [name, deliver];
  });
  return Object.fromEntries(await Promise.all(made));
}

/** Removes the channel's secrets from an error, which every viewer can read and which may repeat a receiver's answer. */
function concealed(error: unknown, channel: ChannelOptions): unknown {
  if (!isCarillonError(error)) return error;
  const { code, message, hint, retryAfterMs } = error;
  return new CarillonError(code, masked(message, channel), { hint: hint && masked(hint, channel), retryAfterMs });
}

/** Returns the function that sends to a channel. Code for mail and for services is imported only if a channel needs it. */
async function sendOf(channel: ChannelOptions, senders: Senders, clock: Clock): Promise<Send> {
  const webhook = asKind(channel, "webhook");
  if (webhook) {
    const post = senders.webhook(webhook, clock);
    return (notice, signal) => post(notice.id, contentOf(notice), signal);
  }
  const mail = asKind(channel, "mail");
  if (mail) {
    const send = (await import("./mail.ts")).mailer(mail);
    return (notice, signal) => send(notice.id, notice, signal);
  }
  const command = asKind(channel, "command");
  if (command)
    return (notice, signal) =>
      senders.run(command.command, JSON.stringify({ notice: notice.id, ...contentOf(notice) }), signal, clock);
  const [{ formatOf }, { postedBy }] = await Promise.all([import("./formats/formats.ts"), import("./posted.ts")]);
  return postedBy(formatOf(channel), channel, senders.post(channel, clock), clock);
}
