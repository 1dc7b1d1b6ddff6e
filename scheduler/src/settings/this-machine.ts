/** True if the host is this machine itself, so that data does not leave it. @param host in the form of `URL.hostname` */
export const isThisMachine = (host: string): boolean =>
  /^(?:localhost|.*\.localhost|127(?:\.\d+){3}|\[::1\]|\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\])$/.test(host);

/** Returns the hosts in a service's URL, which may name several, without their ports. @param address the URL without credentials */
export function hostsOf(address: string): string[] {
  const [, hosts = ""] = /^[^/]*\/\/([^/?]*)/.exec(address) ?? [];
  return hosts.split(",").map((host) => host.replace(/:\d+$/, ""));
}
