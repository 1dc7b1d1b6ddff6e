import type { Clock } from "../../base/clock.ts";
import { type AlarmSettings, noAlarms, type WebhookChannel } from "../../settings/alarms.ts";
import { Alarms, type AlarmsOptions, type Deliver } from "./watch.ts";

type Post = (id: string, content: unknown, signal: AbortSignal) => Promise<void>;
type PosterOf = (channel: WebhookChannel, clock: Clock) => Post;

/**
 * Starts watching for alarms. A process without alarms of its own evaluates the stored rules while it leads, and nothing else.
 * @param posterOf returns the function that posts through the guard of HTTP tasks
 */
export async function watchAlarms(
  shared: Omit<AlarmsOptions, "settings" | "channels">,
  settings: AlarmSettings | null,
  posterOf: PosterOf,
): Promise<Alarms> {
  if (settings === null) return new Alarms({ ...shared, settings: noAlarms(), channels: {} });
  return new Alarms({ ...shared, settings, channels: await channelsOf(settings, posterOf, shared.clock) });
}

/** The mail module is loaded only when a channel sends mail. */
export async function channelsOf(
  { channels }: AlarmSettings,
  posterOf: PosterOf,
  clock: Clock,
): Promise<Record<string, Deliver>> {
  const made = Object.entries(channels).map(async ([name, channel]): Promise<[string, Deliver]> => {
    if ("webhook" in channel) return [name, posterOf(channel, clock)];
    const send = (await import("./mail.ts")).mailer(channel);
    return [name, (id, message, signal) => send(id, message, signal)];
  });
  return Object.fromEntries(await Promise.all(made));
}
