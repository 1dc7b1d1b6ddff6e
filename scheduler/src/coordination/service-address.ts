import { hostname } from "node:os";
import { hasPassword, withoutCredentials } from "../base/credentials.ts";
import { hostsOf, isThisMachine } from "../settings/this-machine.ts";

/**
 * A service's address for comparison: its URL without secrets. A name that leads every machine to itself, such as localhost,
 * counts as another address on each machine. @param url as given by the user
 */
export function serviceAddress(url: string): string {
  const [address = "", query = ""] = withoutCredentials(url).split("?");
  const prefix = new URLSearchParams(query).get("prefix");
  const isLocal = hostsOf(address).some(isThisMachine);
  return [address, prefix === null ? "" : `?prefix=${prefix}`, isLocal ? ` on ${hostname()}` : ""].join("");
}

/**
 * True if other machines can reach a service that asks for no password: any client there can then read and write the data of
 * clusters.
 * @param url as given by the user
 */
export function isOpenToAll(url: string): boolean {
  return !hasPassword(url) && !hostsOf(withoutCredentials(url)).every(isThisMachine);
}

/** The advice for a service that asks for no password. */
export const openAdvice =
  "Give it a password and name it in the URL of `coordination` (docs/coordination.md#who-may-write-there), and let only the cluster's machines reach it.";
