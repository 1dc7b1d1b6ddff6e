import { withoutCredentials } from "../base/credentials.ts";
import { CarillonError } from "../base/errors.ts";
import type { AlarmSettings } from "./alarms/alarms.ts";
import { postsTo } from "./alarms/channels.ts";
import { plainHosts } from "./plain-store.ts";
import { hostsOf, isThisMachine } from "./this-machine.ts";

interface Reached {
  store?: string | undefined;
  listenUrl?: string | undefined;
  coordination?: string | undefined;
  webhooks?: Readonly<Record<string, { url: string }>> | undefined;
}

/**
 * Checks the option `requireTls`: refuses to start a node that would reach the store, the coordination service, a webhook or a mail server
 * on another machine without TLS.
 * @throws OPTION_INVALID
 */
export function checkTls(
  { store, listenUrl, coordination, webhooks = {} }: Reached,
  alarms: AlarmSettings | null,
  environment: Readonly<Record<string, string | undefined>>,
): void {
  const refuse = (path: string, hosts: readonly string[]) => {
    if (hosts.length === 0) return;
    throw new CarillonError("OPTION_INVALID", `requireTls: ${path} leads to ${hosts.join(", ")} without TLS`, {
      hint: "See docs/postgresql.md#tls and docs/coordination.md.",
      path,
    });
  };
  for (const [path, url] of Object.entries({ store, listenUrl }))
    if (url !== undefined && /^postgres(?:ql)?:/.test(url)) refuse(path, plainHosts(url, environment, true));
  if (coordination !== undefined && !/^(?:rediss(?:\+\w+)?|zookeepers):/.test(coordination))
    refuse(
      "coordination",
      hostsOf(withoutCredentials(coordination)).filter((host) => !isThisMachine(host)),
    );
  const ping = alarms?.ping ? new URL(alarms.ping.url) : null;
  if (ping?.protocol === "http:" && !isThisMachine(ping.hostname)) refuse("alarms.ping.url", [ping.hostname]);
  for (const [name, { url }] of Object.entries(webhooks)) {
    const { protocol, hostname } = new URL(url);
    if (protocol === "http:" && !isThisMachine(hostname)) refuse(`webhooks.${name}`, [hostname]);
  }
  for (const [name, channel] of Object.entries(alarms?.channels ?? {})) {
    const url = "smtp" in channel ? new URL(channel.smtp) : postsTo(channel);
    if (url === null) continue;
    const { protocol, hostname, password } = url;
    // A mail channel with a password requires STARTTLS by default, so its mail server does not count as unencrypted.
    const isPlain =
      "smtp" in channel ? protocol === "smtp:" && !(channel.requireTls ?? password !== "") : protocol === "http:";
    if (isPlain && !isThisMachine(hostname)) refuse(`alarms.channels.${name}`, [hostname]);
  }
}
