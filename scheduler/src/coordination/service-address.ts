import { hostname } from "node:os";
import { hasPassword, withoutCredentials } from "../base/credentials.ts";
import { isThisMachine } from "../settings/this-machine.ts";

/**
 * Where a service is, to be compared: its URL without what is secret in it. A name that leads every machine to itself is another
 * address on each. @param url as given by the user
 */
export function serviceAddress(url: string): string {
  const [address = "", query = ""] = withoutCredentials(url).split("?");
  const prefix = new URLSearchParams(query).get("prefix");
  const isLocal = hostsOf(address).some(isThisMachine);
  return [address, prefix === null ? "" : `?prefix=${prefix}`, isLocal ? ` on ${hostname()}` : ""].join("");
}

/**
 * Whether other machines can reach a service that asks for no password, so that whoever does can read and write what clusters keep there.
 * @param url as given by the user
 */
export function isOpenToAll(url: string): boolean {
  return !hasPassword(url) && !hostsOf(withoutCredentials(url)).every(isThisMachine);
}

/** What to do about a service that is. */
export const openAdvice =
  "Give it a password and name it in the URL of `coordination` (docs/coordination.md#who-may-write-there), and let only the cluster's machines reach it.";

function hostsOf(address: string): string[] {
  const [, hosts = ""] = /^[^/]*\/\/([^/?]*)/.exec(address) ?? [];
  return hosts.split(",").map((host) => host.replace(/:\d+$/, ""));
}
