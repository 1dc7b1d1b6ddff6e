import { hostname } from "node:os";
import { hasPassword, withoutCredentials, withoutPasswordOptions } from "../base/credentials.ts";
import { hostsOf, isThisMachine } from "../settings/this-machine.ts";

/**
 * A service's address for comparison between processes: its URL without secrets. An address such as localhost gets this machine's name
 * added, because it means another service on each machine.
 * @param url as configured
 */
export function serviceAddress(url: string): string {
  const [address = "", query = ""] = withoutCredentials(url).split("?");
  const prefix = new URLSearchParams(query).get("prefix");
  const isLocal = hostsOf(address).some(isThisMachine);
  return [address, prefix === null ? "" : `?prefix=${prefix}`, isLocal ? ` on ${hostname()}` : ""].join("");
}

/**
 * True if the URL contains no password and names a host other than this machine: any client that reaches the service may then be able to
 * read and write the cluster's data.
 * @param url as configured
 */
export function isOpenToAll(url: string): boolean {
  return !hasPassword(withoutPasswordOptions(url)) && !hostsOf(withoutCredentials(url)).every(isThisMachine);
}

/** The advice that is logged for a service that requires no password. */
export const openAdvice =
  "Give it a password and name it in the URL of `coordination` (docs/coordination/coordination.md#who-may-write-there), and let only the cluster's machines reach it.";
