import { decoded, parseStoreUrl } from "../store/store-url.ts";
import { isThisMachine } from "./this-machine.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Advice, for the log, about a store that is reached without TLS. */
export const plainAdvice =
  "Add sslmode=verify-full to its URL, and sslrootcert=FILE where its authority is your own (docs/operate/postgresql.md#tls). Where nobody else is on the way, say so: sslmode=disable.";

/** The modes that the driver accepts in PGSSLMODE. With any other it connects without TLS. */
const driverModes = new Set(["disable", "prefer", "require", "verify-ca", "verify-full", "no-verify"]);

export const plainWords = (hosts: readonly string[]): string =>
  `the store at ${hosts.join(", ")} is reached without TLS: whoever is on the way can read and change payloads, results and statements`;

/**
 * Returns the hosts other than this machine that a store's URL reaches without TLS. The list is empty if the URL or `environment`
 * has any setting for TLS, such as sslmode=disable.
 * @param environment the PostgreSQL driver's variables, which apply where the URL sets nothing
 * @param evenIfIntended true: includes hosts for which sslmode=disable is set
 */
export function plainHosts(text: string, environment: Environment, evenIfIntended = false): string[] {
  const { url, hosts } = parseStoreUrl(text);
  const [address = "", query = ""] = url.split(/\?([\s\S]*)/);
  const parameters = new URLSearchParams(query);
  const isSaid =
    !/^(?:0|false)$/.test(parameters.get("ssl") ?? "0") ||
    ["sslmode", "sslrootcert", "sslcert", "sslkey", "sslnegotiation"].some((name) => parameters.has(name)) ||
    driverModes.has(environment.PGSSLMODE ?? "");
  const isOff = (parameters.get("sslmode") ?? environment.PGSSLMODE) === "disable";
  if ((isSaid && !(isOff && evenIfIntended)) || address.startsWith("/")) return [];
  const [, own = ""] = /^[^/]*\/\/(?:[^/]*@)?(\[[^\]]*\]|[^:/]*)/.exec(address) ?? [];
  const one = parameters.get("host") || (decoded(own) ?? own) || environment.PGHOST || "localhost";
  const named = hosts.length > 0 ? hosts.map(({ host }) => host) : [one];
  const isOther = (host: string) => !isThisMachine(/^[^[].*:/.test(host) ? `[${host}]` : host);
  return named.filter((host) => !host.startsWith("/") && isOther(host));
}
