import { withoutCredentials } from "../base/credentials.ts";
import { CarillonError } from "../base/errors.ts";
import type { AlarmSettings } from "./alarms.ts";
import { plainHosts } from "./plain-store.ts";
import { hostsOf, isThisMachine } from "./this-machine.ts";

interface Reached {
  store?: string | undefined;
  listenUrl?: string | undefined;
  coordination?: string | undefined;
}

/**
 * Checks `requireTls`: a node does not start if it would reach the store, the coordination service, a webhook or a mail server on another
 * machine without TLS.
 * @throws OPTION_INVALID
 */
export function checkTls(
  { store, listenUrl, coordination }: Reached,
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
  for (const [name, channel] of Object.entries(alarms?.channels ?? {})) {
    const { protocol, hostname, password } = new URL("webhook" in channel ? channel.webhook : channel.smtp);
    // STARTTLS is required of a mail server that is given a password, unless the channel says otherwise.
    const isPlain =
      "webhook" in channel ? protocol === "http:" : protocol === "smtp:" && !(channel.requireTls ?? password !== "");
    if (isPlain && !isThisMachine(hostname)) refuse(`alarms.channels.${name}`, [hostname]);
  }
}
