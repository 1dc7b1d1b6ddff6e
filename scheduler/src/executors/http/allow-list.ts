/**
 * The destinations that a worker's HTTP tasks may call. The list belongs to the worker's own configuration; the store and its users cannot
 * change it. Besides the host name, the address to connect to is checked: if an allowed name resolves to a private or local address or to a
 * cloud's metadata service, the address is refused unless it is in the list itself. So control over DNS records does not give access to
 * internal addresses.
 */
import { BlockList, isIP, isIPv6 } from "node:net";
import { CarillonError } from "../../base/errors.ts";

const special = new BlockList();
for (const [range, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const)
  special.addSubnet(range, prefix, "ipv4");
// Ranges inside 2000::/3 that are not public: Teredo and similar protocols, documentation, and 6to4, which can reach any IPv4 address.
for (const [range, prefix] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  special.addSubnet(range, prefix, "ipv6");
/** The public range of IPv6; all other IPv6 addresses are local, multicast, translated from IPv4, or unassigned. */
const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");

interface Entry {
  /** The port that the entry allows; null: any port. */
  port: number | null;
  matches(host: string, address: string): boolean;
}

export class AllowList {
  readonly #names: Entry[] = [];
  readonly #addresses: Entry[] = [];

  /**
   * @param entries "api.example.com", "*.example.com" (names below it), "*" (every name), "10.1.2.3", "10.1.0.0/16", "::1" or "fd00::/8";
   * each optionally with a port: "host:8443", "[::1]:80"
   * @param option the option's name, for errors
   * @throws OPTION_INVALID
   */
  constructor(entries: readonly string[], option = "httpTasks.allow") {
    for (const text of entries) {
      const { list, ...entry } = parseEntry(text, option);
      (list === "names" ? this.#names : this.#addresses).push(entry);
    }
  }

  /** False if no address of the host could be permitted, so that the name need not be resolved. */
  mayResolve(host: string, port: number): boolean {
    return this.#addresses.some((entry) => onPort(entry, port)) || this.#named(host, "", port);
  }

  /** True if the address may be called. @param address an address of `host`; equal to `host` if `host` is an address */
  permits(host: string, port: number, address: string): boolean {
    const plain = plainAddress(address);
    if (plain === null) return false;
    if (this.#addresses.some((entry) => onPort(entry, port) && entry.matches(host, plain))) return true;
    return isPublic(plain) && this.#named(host, plain, port);
  }

  #named(host: string, address: string, port: number): boolean {
    return this.#names.some((entry) => onPort(entry, port) && entry.matches(host, address));
  }
}

const onPort = (entry: Entry, port: number): boolean => entry.port === null || entry.port === port;
const familyOf = (address: string) => (isIPv6(address) ? "ipv6" : "ipv4");

/** True if the address is in no private, local or unassigned range. @param address in the notation of `plainAddress` */
function isPublic(address: string): boolean {
  if (special.check(address, familyOf(address))) return false;
  return !isIPv6(address) || globalUnicast.check(address, "ipv6");
}

/**
 * Converts an address to a unique notation; an IPv4 address mapped to IPv6 becomes IPv4. Returns null if the text is no address, or an
 * address with a zone, which is valid on one network interface only.
 */
export function plainAddress(text: string): string | null {
  if (isIP(text) === 0 || text.includes("%")) return null;
  if (!isIPv6(text)) return text;
  const address = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address);
  if (!mapped) return address;
  const [high, low] = [Number.parseInt(mapped[1] as string, 16), Number.parseInt(mapped[2] as string, 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

function parseEntry(text: string, option: string): Entry & { list: "names" | "addresses" } {
  const wrong = () =>
    new CarillonError("OPTION_INVALID", `${option}: ${JSON.stringify(text)} is no host and no address range`, {
      path: option,
      hint: 'Give "api.example.com", "*.example.com", "*", "10.1.2.3", "10.1.0.0/16" or "fd00::/8", if need be with ":port".',
    });
  if (typeof text !== "string") throw wrong();
  const [, bracketed, rest = text] = /^\[([^\]]+)\](.*)$/.exec(text) ?? [];
  // Text without brackets that has two or more colons is an IPv6 address without a port.
  const withPort = bracketed !== undefined || text.split(":").length === 2;
  const parts = withPort ? /^([^:]*)(?::(\d{1,5}))?$/.exec(rest) : [rest, rest, undefined];
  if (!parts) throw wrong();
  const port = parts[2] === undefined ? null : Number(parts[2]);
  if (port !== null && (port < 1 || port > 65_535)) throw wrong();
  const [base = "", prefixText, ...more] = `${bracketed ?? ""}${parts[1] ?? ""}`.split("/");
  if (more.length > 0) throw wrong();
  const address = plainAddress(base);
  if (address !== null) {
    const family = familyOf(address);
    const longest = family === "ipv6" ? 128 : 32;
    const prefix = prefixText === undefined ? longest : Number(/^\d{1,3}$/.exec(prefixText)?.[0] ?? Number.NaN);
    // A range of IPv4-mapped addresses is refused, because it would cover other addresses than its text suggests.
    if (!(prefix >= 0 && prefix <= longest) || (family === "ipv4" && isIPv6(base) && prefixText !== undefined))
      throw wrong();
    const range = new BlockList();
    range.addSubnet(address, prefix, family);
    const matches = (_: string, tried: string) => familyOf(tried) === family && range.check(tried, family);
    return { list: "addresses", port, matches };
  }
  if (bracketed !== undefined || prefixText !== undefined) throw wrong();
  if (base === "*") return { list: "names", port, matches: (host) => isIP(host) === 0 };
  const name = base.replace(/^\*\./, "").toLowerCase();
  const canonical = URL.canParse(`http://${name}`) ? new URL(`http://${name}`).hostname : "";
  // Also refuses numbers that a URL interprets as an address, such as 2130706433 for 127.0.0.1.
  if (canonical !== name || !/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(name)) throw wrong();
  const matches = base.startsWith("*.") ? (host: string) => host.endsWith(`.${name}`) : (host: string) => host === name;
  return { list: "names", port, matches };
}
