import { escapeHint } from "../base/credentials.ts";
import { CarillonError } from "../base/errors.ts";

/** One server named in a store URL. */
export interface Host {
  /** A host name, an IP address without brackets, or the directory of a Unix socket. */
  readonly host: string;
  readonly port: number;
}

export interface StoreUrl {
  /** The hosts, if the URL names several; empty for a single host, which the driver reads from `url` itself. */
  readonly hosts: readonly Host[];
  /** The URL for the driver. With several hosts it has only the first one, and lacks the parameters that only Carillon reads. */
  readonly url: string;
}

const defaultPort = 5432;
/** The accepted values of target_session_attrs. Carillon must write, so it always connects to the server that accepts writes. */
const writing = new Set(["any", "read-write", "primary"]);

/** Decodes a part of a URL. @returns null if it has a % that begins no escape, or escapes that are not UTF-8 */
export function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

/**
 * Parses `postgres://user@a:5432,b:5433/database?target_session_attrs=read-write`, the format of libpq: several hosts, each with its own or
 * the default port; `?host=a,b&port=5432,5433` means the same.
 * @param option the name of the option, for errors
 * @throws OPTION_INVALID with that name as its path
 */
export function parseStoreUrl(text: string, option = "store"): StoreUrl {
  const wrong = (what: string, hint: string) =>
    new CarillonError("OPTION_INVALID", `${option}: ${what}`, { hint, path: option });
  const form = "Give a URL such as postgres://user:password@host:5432/database; several hosts are separated by commas.";
  const [, scheme, user = "", authority = "", rest = ""] =
    /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)([\s\S]*)$/.exec(text) ?? [];
  // The path of a socket, and forms that only the driver understands, are passed to the driver unchanged.
  if (scheme === undefined) return { hosts: [], url: text };
  const [path = "", query = ""] = rest.split(/\?([\s\S]*)/);
  const parameters = new URLSearchParams(query);
  // An unescaped / or ? in the password ends the hosts too early. The text after it is then part of the password, and is not shown.
  if (path.includes("@") || [...parameters.keys()].some((name) => name.includes("@")))
    throw wrong("it has an @ after its hosts", escapeHint);
  // The driver would use the last value of several, and other readers the first one.
  const twice = [...parameters.keys()].find((name) => parameters.getAll(name).length > 1);
  if (twice !== undefined) throw wrong(`it has ${JSON.stringify(twice)} more than once`, "Leave all but one out.");
  // In these the driver accepts a % that begins no escape, but not escapes that are not UTF-8.
  for (const [what, part] of Object.entries({ "user or password": user, database: path }))
    if (decoded(part.replace(/%(?![0-9a-f]{2})/gi, "%25")) === null)
      throw wrong(`its ${what} has a malformed escape`, escapeHint);
  const attributes = parameters.get("target_session_attrs");
  if (attributes !== null && !writing.has(attributes))
    throw wrong(
      `target_session_attrs cannot be ${JSON.stringify(attributes)}: the store is written to`,
      "Leave it out, or give read-write: of several hosts Carillon always takes the one that accepts writes.",
    );
  const listed = parameters.get("host")?.split(",") ?? authority.split(",");
  const ports = parameters.get("port")?.split(",") ?? [];
  if (ports.length > 1 && ports.length !== listed.length)
    throw wrong(`it names ${listed.length} hosts and ${ports.length} ports`, form);
  const hosts = listed.map((one, at) => {
    const [, bracketed, plain = "", own] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(one) ?? [];
    const name = bracketed ?? plain;
    // Parameters are decoded already.
    const host = parameters.has("host") ? name : decoded(name);
    if (host === null) throw wrong(`its host ${at + 1} has a malformed escape`, escapeHint);
    const port = Number(ports[at] ?? ports[0] ?? (own || defaultPort));
    if (listed.length > 1 && host === "") throw wrong(`its host ${at + 1} of ${listed.length} is empty`, form);
    if (!(port >= 1 && port <= 65_535)) throw wrong(`the port of ${host} is not from 1 to 65535`, form);
    return { host, port };
  });
  if (listed.length === 1 && attributes === null) return { hosts: [], url: text };
  for (const name of ["target_session_attrs", "host", "port"]) parameters.delete(name);
  const first = hosts[0] as Host;
  const place = first.host.startsWith("/") ? "" : first.host.includes(":") ? `[${first.host}]` : first.host;
  if (place === "") parameters.set("host", first.host);
  const left = parameters.toString();
  const url = `${scheme}${user}${place}${place === "" ? "" : `:${first.port}`}${path}${left && `?${left}`}`;
  return { hosts: listed.length === 1 ? [] : hosts, url };
}
