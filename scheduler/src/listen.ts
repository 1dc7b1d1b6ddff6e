import { isLoopback } from "./address.ts";
import { CarillonError } from "./errors.ts";
import { shownValue } from "./json.ts";

/** Where to listen: "host:port", "[v6]:port" or "port", which is 127.0.0.1's; port 0 takes a free one. @throws OPTION_INVALID */
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
 * Keys and payloads travel as they are. So what others can reach is listened at only when the operator says that TLS ends
 * before it. @throws OPTION_INVALID
 */
export function checkListen(text: string, behindProxy: boolean): void {
  const { host, port } = parseListen(text);
  if (behindProxy || isLoopback(`${host.includes(":") ? `[${host}]` : host}:${port}`)) return;
  throw new CarillonError("OPTION_INVALID", `listening at ${text} would let keys and payloads travel unencrypted`, {
    hint: "Put a proxy that ends TLS before it and say so with --behind-proxy (behindProxy: true), or listen at 127.0.0.1.",
  });
}
