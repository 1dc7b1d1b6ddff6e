import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";

const shape = /^(\[[^\][]+\]|[^:[\]/?#@%\s]+):(\d{1,5})$/;
const hostName = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/;

/**
 * Validates and normalises the address at which other processes reach this process: "host:port", with an IPv6 address in
 * brackets. Equal addresses become equal texts: lower case, and the shortest form of an IP address.
 * @throws OPTION_INVALID
 */
export function parseAddress(text: string): string {
  const [, given = "", digits = ""] = shape.exec(text) ?? [];
  const port = Number(digits);
  const wrong = (what: string) =>
    new CarillonError("OPTION_INVALID", `address cannot be ${shownValue(text)}: ${what}`, {
      hint: "Give where the others reach this process: host:port, such as 10.0.0.7:7373, node-1.example:7373 or [2001:db8::7]:7373.",
    });
  if (given === "") throw wrong("it is not host:port");
  if (port < 1 || port > 65_535) throw wrong("a port is 1 to 65535");
  const asUrl = `http://${given.replace(/\.$/, "")}`;
  if (!URL.canParse(asUrl)) throw wrong("there is no such host");
  const host = new URL(asUrl).hostname;
  if (!host.startsWith("[") && !hostName.test(host)) throw wrong("there is no such host");
  if (host === "0.0.0.0" || host === "[::]") throw wrong("it means every address of a machine, which nobody can reach");
  return `${host}:${port}`;
}

/** True if the address is a loopback address, which on every machine means that machine itself. */
export function isLoopback(address: string): boolean {
  return /^(?:127\.|\[::1\]|\[::ffff:7f|(?:[^:]*\.)?localhost:)/.test(address);
}
