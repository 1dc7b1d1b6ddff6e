import { isIP } from "node:net";
import { withoutCredentials } from "../base/credentials.ts";
import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { isLoopback } from "./address.ts";

/**
 * Parses a listening address: "host:port", "[v6]:port" or "port", which means 127.0.0.1. Port 0 means any free port.
 * @throws OPTION_INVALID
 */
export function parseListen(text: string): { host: string; port: number } {
  const [, given, digits = ""] = /^(?:(\[[\da-fA-F:.]+\]|[\w.-]+):)?(\d{1,5})$/.exec(text) ?? [];
  const port = digits === "" ? Number.NaN : Number(digits);
  if (!(port >= 0 && port <= 65_535)) {
    throw new CarillonError("OPTION_INVALID", `listen cannot be ${shownValue(text)}`, {
      hint: "Give host:port, such as 127.0.0.1:7373 or 0.0.0.0:7373, or a port alone.",
    });
  }
  return { host: (given ?? "127.0.0.1").replace(/^\[|\]$/g, ""), port };
}

/**
 * Refuses a listening address that other machines can reach, because keys and payloads are sent unencrypted at this address. The
 * address is accepted if the operator states that a proxy terminates TLS in front of it.
 * @throws OPTION_INVALID
 */
export function checkListen(text: string, behindProxy: boolean): void {
  const { host, port } = parseListen(text);
  if (behindProxy || isLoopback(`${host.includes(":") ? `[${host}]` : host}:${port}`)) return;
  throw new CarillonError("OPTION_INVALID", `listening at ${text} would let keys and payloads travel unencrypted`, {
    hint: "Put a proxy that ends TLS before it and say so with --behind-proxy (behindProxy: true), or listen at 127.0.0.1.",
  });
}

/** The loopback addresses of this machine. */
export const loopback: readonly string[] = ["127.0.0.0/8", "::1"];

/** Validates the option `trustedProxies`. @throws OPTION_INVALID */
export function checkProxies(given: readonly string[] | undefined, behindProxy: boolean): void {
  if (given === undefined) return;
  const wrong = given.find((text) => !isNetwork(text));
  if (wrong !== undefined)
    throw new CarillonError("OPTION_INVALID", `trustedProxies cannot have ${shownValue(withoutCredentials(wrong))}`, {
      hint: 'Give addresses of proxies, such as "10.0.3.7", or networks with at least one fixed bit, such as "10.0.3.0/24".',
      path: "trustedProxies",
    });
  if (!behindProxy)
    throw new CarillonError("OPTION_INVALID", "trustedProxies without behindProxy: no proxy would be believed", {
      hint: "Set behindProxy (--behind-proxy) where a proxy ends TLS, or leave trustedProxies out.",
      path: "trustedProxies",
    });
}

function isNetwork(text: string): boolean {
  const [, address = "", bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const kind = isIP(address);
  return kind !== 0 && (bits === undefined || (Number(bits) > 0 && Number(bits) <= (kind === 4 ? 32 : 128)));
}
