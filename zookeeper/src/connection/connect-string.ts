import { ZooKeeperError } from "../base/errors.ts";
import { checkPath } from "../base/paths.ts";

export interface Host {
  readonly host: string;
  readonly port: number;
}

export const defaultPort = 2181;

/**
 * Parses a connect string such as `zk1:2181,zk2:2181,[::1]:2181/chroot`: hosts with a port (default 2181) and, after the last host, the
 * chroot, which is the path that the client uses as its root.
 * @throws CONNECT_STRING_INVALID, PATH_INVALID
 */
export function parseConnectString(text: string): { hosts: Host[]; chroot: string } {
  const wrong = (problem: string) =>
    new ZooKeeperError("CONNECT_STRING_INVALID", `the connect string ${JSON.stringify(text)} ${problem}`, {
      hint: "it looks like zk1:2181,zk2:2181/chroot",
    });
  if (typeof text !== "string") throw wrong("is not a text");
  const slash = text.indexOf("/");
  const list = slash < 0 ? text : text.slice(0, slash);
  const path = slash < 0 ? "/" : text.slice(slash);
  if (/^[a-z+]+:$/i.test(list) && path.startsWith("//")) throw wrong("has a scheme; ZooKeeper's have none");
  checkPath(path);
  const hosts = list.split(",").map((part) => {
    const match = /^(?:\[([0-9a-f:.%\w]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/i.exec(part.trim());
    if (!match)
      throw wrong(part.trim() === "" ? "has an empty host" : `has a host that cannot be read: ${part.trim()}`);
    const port = match[3] === undefined ? defaultPort : Number(match[3]);
    if (port < 1 || port > 65_535) throw wrong(`has the port ${port}`);
    return { host: match[1] ?? match[2] ?? "", port };
  });
  return { hosts, chroot: path === "/" ? "" : path };
}
