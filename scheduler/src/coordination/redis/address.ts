import { escapeHint, withoutPasswordOptions } from "../../base/credentials.ts";
import { CarillonError } from "../../base/errors.ts";

/** The address of a Redis server, sentinel group or cluster, parsed from a URL. */
export interface RedisAddress {
  readonly kind: "single" | "sentinel" | "cluster";
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** The password for the sentinels; the URL's user and password apply to the data servers. */
  readonly sentinelPassword: string | undefined;
  /** The name under which the sentinels know the master; "" without sentinels. */
  readonly master: string;
  readonly database: number;
  /**
   * The prefix of all keys. The keys of the list and the queue contain it in braces (a hash tag), so that one node of a Redis
   * Cluster holds them all; the keys of a lock contain prefix, kind and name in braces, so that one node holds all keys of that
   * lock.
   */
  readonly prefix: string;
  /** The URL without user, password and options, for messages. */
  readonly text: string;
}

const shapes =
  "redis://[user:password@]host[:port][/database], redis+sentinel://host[:port],host/master[/database] or " +
  "redis+cluster://host[:port],host; rediss… for TLS; ?prefix=… and ?sentinelPassword=… as options";
const shape = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^/?#]*)@)?([^@/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/;
const hostAndPort = /^(\[[\da-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i;
const prefixShape = /^[\w.:/-]{1,100}$/;
/** Matches prefixes that are refused, because their keys could collide with the locks of another prefix. */
const locksShape = /:(?:lock|semaphore|election)(?::|$)/;

/** Parses a Redis URL. @throws OPTION_INVALID; the message does not contain a password whose special characters are escaped */
export function parseRedisUrl(url: string): RedisAddress {
  const found = shape.exec(url);
  if (!found) throw wrong("the Redis URL cannot be read");
  const [, scheme = "", variant, credentials, hostList = "", path = "", query = ""] = found;
  const kind = variant === "sentinel" || variant === "cluster" ? variant : "single";
  // An unescaped / or ? in the password ends the hosts too early. The text after it is then part of the password, and is not shown.
  if (withoutPasswordOptions(`${path}?${query}`).includes("@"))
    throw wrong("the Redis URL has an @ after its hosts; a / or ? in its password is not escaped");
  const text = `${scheme}${variant ? `+${variant}` : ""}://${hostList}${path}`;

  const defaultPort = kind === "sentinel" ? 26_379 : 6_379;
  // The text is not shown, because a password without a host stands in the same place.
  const hosts = hostList.split(",").map((part, at) => {
    const [, host = "", port] = hostAndPort.exec(part) ?? [];
    const number = port === undefined ? defaultPort : Number(port);
    if (host === "" || number < 1 || number > 65_535)
      throw wrong(`part ${at + 1} of the Redis URL's hosts is no host and port`);
    return { host: host.replace(/^\[|\]$/g, ""), port: number };
  });
  if (kind === "single" && hosts.length > 1) throw wrong(`${text} names several servers`);

  const parts = path.split("/").slice(1).map(decode);
  if (parts.at(-1) === "") parts.pop();
  const master = kind === "sentinel" ? (parts.shift() ?? "") : "";
  if (kind === "sentinel" && master === "") throw wrong(`${text} does not name the master`);
  const database = parts.shift() ?? "0";
  if (!/^\d{1,5}$/.test(database) || parts.length > 0) throw wrong(`${text} ends in something that is no database`);
  if (kind === "cluster" && database !== "0") throw wrong(`${text} names a database, and a Redis Cluster has only 0`);

  const options = new URLSearchParams(query);
  for (const name of options.keys()) {
    // The name is not shown: it may be the part of a password that follows an unescaped &.
    if (name !== "prefix" && name !== "sentinelPassword")
      throw wrong(`${text} has an option other than prefix and sentinelPassword`);
  }
  const prefix = options.get("prefix") ?? "carillon";
  if (!prefixShape.test(prefix)) throw wrong(`the prefix ${JSON.stringify(prefix)} has characters it cannot have`);
  if (locksShape.test(prefix)) throw wrong(`the prefix ${JSON.stringify(prefix)} has a part that names a kind of lock`);

  const colon = credentials?.indexOf(":") ?? -1;
  const user = colon < 0 ? credentials : credentials?.slice(0, colon);
  const password = colon < 0 ? undefined : credentials?.slice(colon + 1);
  return {
    kind,
    hosts,
    tls: scheme === "rediss",
    username: user ? decode(user) : undefined,
    password: password ? decode(password) : undefined,
    sentinelPassword: options.get("sentinelPassword") ?? undefined,
    master,
    database: Number(database),
    prefix,
    text,
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw wrong("the Redis URL has a % that begins no escape"); // the message does not contain the text, which may be the password
  }
}

function wrong(message: string): CarillonError {
  return new CarillonError("OPTION_INVALID", message, { hint: `Write ${shapes}. ${escapeHint}` });
}
