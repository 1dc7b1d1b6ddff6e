import { hostname } from "node:os";
import { withoutCredentials } from "../base/credentials.ts";
import { isThisMachine } from "../settings/this-machine.ts";

/**
 * Where a service is, to be compared: its URL without what is secret in it. A name that leads every machine to itself is another
 * address on each. @param url as given by the user
 */
export function serviceAddress(url: string): string {
  const [address = "", query = ""] = withoutCredentials(url).split("?");
  const prefix = new URLSearchParams(query).get("prefix");
  const [, hosts = ""] = /^[^/]*\/\/([^/]*)/.exec(address) ?? [];
  const isLocal = hosts.split(",").some((host) => isThisMachine(host.replace(/:\d+$/, "")));
  return [address, prefix === null ? "" : `?prefix=${prefix}`, isLocal ? ` on ${hostname()}` : ""].join("");
}
