import { withoutCredentials } from "../base/credentials.ts";
import { CarillonError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { AlarmSettings } from "./alarms/alarms.ts";
import { asKind, postsTo } from "./alarms/channels.ts";
import { plainHosts } from "./plain-store.ts";
import { hostsOf, isThisMachine } from "./this-machine.ts";

interface Reached {
  store?: string | undefined;
  listenUrl?: string | undefined;
  coordination?: string | undefined;
  webhooks?: Readonly<Record<string, { url: string }>> | undefined;
}

/** An option that leads to other machines without TLS. */
interface Plain {
  path: string;
  hosts: string[];
}

const plainProtocols = new Set(["http:", "syslog+tcp:", "syslog+udp:"]);

/** Returns the options, apart from those of the store, that lead to a service of another machine without TLS. */
function plainServices({ coordination, webhooks = {} }: Reached, alarms: AlarmSettings | null): Plain[] {
  const found: Plain[] = [];
  const add = (path: string, hosts: readonly string[]) => {
    const others = hosts.filter((host) => !isThisMachine(host));
    if (others.length > 0) found.push({ path, hosts: others });
  };
  const addPlain = (path: string, { protocol, hostname }: URL) => {
    if (plainProtocols.has(protocol)) add(path, [hostname]);
  };
  if (coordination !== undefined && !/^(?:rediss(?:\+\w+)?|zookeepers):/.test(coordination))
    add("coordination", hostsOf(withoutCredentials(coordination)));
  if (alarms?.ping) addPlain("alarms.ping.url", new URL(alarms.ping.url));
  for (const [name, { url }] of Object.entries(webhooks)) addPlain(`webhooks.${name}`, new URL(url));
  for (const [name, channel] of Object.entries(alarms?.channels ?? {})) {
    const path = `alarms.channels.${name}`;
    const mail = asKind(channel, "mail");
    const url = mail ? new URL(mail.smtp) : postsTo(channel);
    if (url === null) continue;
    // A mail channel with a password requires STARTTLS by default, so its mail server does not count as unencrypted.
    if (!mail) addPlain(path, url);
    else if (url.protocol === "smtp:" && !(mail.requireTls ?? url.password !== "")) add(path, [url.hostname]);
  }
  return found;
}

/**
 * Checks the option `requireTls`: refuses to start a node that would reach the store, the coordination service, a webhook or a mail server
 * on another machine without TLS.
 * @throws OPTION_INVALID
 */
export function checkTls(
  { store, listenUrl, ...services }: Reached,
  alarms: AlarmSettings | null,
  environment: Readonly<Record<string, string | undefined>>,
): void {
  const stores = Object.entries({ store, listenUrl }).flatMap(([path, url]): Plain[] =>
    url !== undefined && /^postgres(?:ql)?:/.test(url) ? [{ path, hosts: plainHosts(url, environment, true) }] : [],
  );
  for (const { path, hosts } of [...stores, ...plainServices(services, alarms)])
    if (hosts.length > 0)
      throw new CarillonError("OPTION_INVALID", `requireTls: ${path} leads to ${hosts.join(", ")} without TLS`, {
        hint: "See docs/operate/postgresql.md#tls and docs/coordination/coordination.md.",
        path,
      });
}

const advice =
  "Give a URL with TLS: rediss:, zookeepers:, https:, syslog+tls: or smtps:, or requireTls: true for a mail channel. With requireTls: true in the settings, a process refuses to start without TLS.";

/** Logs a warning for each service of another machine that is reached without TLS; the store is warned of when it is opened. */
export function warnOfPlainServices(reached: Reached, alarms: AlarmSettings | null, log: Log): void {
  for (const { path, hosts } of plainServices(reached, alarms))
    log.warn({ advice }, `${path} leads to ${hosts.join(", ")} without TLS: others on the way can read and change it`);
}
