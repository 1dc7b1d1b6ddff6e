/** Reads the servers' own counters with ZooKeeper's four-letter command `mntr`. */
import { connect } from "node:net";

/** The counters of one server by name, without the prefix `zk_`. */
export type Counters = ReadonlyMap<string, number>;

/** Sends a four-letter command on a new connection. @param word a command that the server allows @returns the reply */
export function ask(host: string, port: number, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => socket.write(word));
    let text = "";
    socket.setTimeout(10_000, () => socket.destroy(new Error(`the server did not answer to ${word}`)));
    socket.setEncoding("utf8").on("data", (part) => {
      text += part;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
  });
}

function hosts(url: string): { host: string; port: number }[] {
  return url.split(",").map((address) => {
    const cut = address.lastIndexOf(":");
    return { host: address.slice(0, cut), port: Number(address.slice(cut + 1)) };
  });
}

/** Returns the counters of each server in a connect string. @throws if a server cannot be reached or returns no counters */
export function counters(url: string): Promise<Counters[]> {
  return Promise.all(
    hosts(url).map(async ({ host, port }) => {
      const text = await ask(host, port, "mntr");
      const found = [...text.matchAll(/^zk_(\S+)\t(-?[\d.]+)$/gm)].map(
        ([, name = "", value]) => [name, Number(value)] as const,
      );
      if (found.length === 0) throw new Error(`${host}:${port} does not tell mntr: allow it by 4lw.commands.whitelist`);
      return new Map(found);
    }),
  );
}

/** Resets the servers' counters to 0. */
export async function reset(url: string): Promise<void> {
  await Promise.all(hosts(url).map(({ host, port }) => ask(host, port, "srst")));
}

/** Returns the sum of one counter over all servers. */
export function sum(all: readonly Counters[], name: string): number {
  return all.reduce((total, one) => total + (one.get(name) ?? 0), 0);
}
