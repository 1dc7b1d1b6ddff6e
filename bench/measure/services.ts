/** The servers that the benches use, and the servers' own counts of requests. */
import { connect } from "node:net";
import { counters, sum } from "../zookeeper/server.ts";

export type Driver = "postgres" | "zookeeper" | "redis";
export const drivers: readonly Driver[] = ["postgres", "zookeeper", "redis"];

/** Returns the server's URL, which `npm run bench` sets in an environment variable. @throws if the variable is not set */
export function serverUrl(driver: Driver): string {
  const variable = `CARILLON_BENCH_${driver.toUpperCase()}_URL`;
  const url = process.env[variable];
  if (url) return url;
  throw new Error(`${variable} is not set; start this by \`npm run bench -- QUESTION\``);
}

/** The value of `carillon({ coordination })` with `name` as path or prefix; undefined for postgres, which needs none. */
export function coordinationUrl(driver: Driver, name: string): string | undefined {
  if (driver === "postgres") return undefined;
  return driver === "zookeeper" ? `zookeeper://${serverUrl(driver)}/${name}` : `${serverUrl(driver)}?prefix=${name}`;
}

/**
 * Returns the number of requests received: ZooKeeper's packets, or Redis's scripts, pings and subscriptions; 0 for postgres. The call
 * itself adds at most one at each server.
 */
export async function requests(driver: Driver): Promise<number> {
  if (driver === "postgres") return 0;
  if (driver === "zookeeper") return sum(await counters(serverUrl(driver)), "packets_received");
  const stats = await askRedis("INFO commandstats");
  // Other commands are not counted, because scripts call them as parts of one request.
  const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  return ["evalsha", "eval", "ping", "subscribe"].reduce((all, name) => all + calls(name), 0);
}

/** Sends one command and QUIT on a new connection, and returns the raw replies to both. */
function askRedis(line: string): Promise<string> {
  const { hostname, port } = new URL(serverUrl("redis"));
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(`${line}\r\nQUIT\r\n`));
    let text = "";
    socket.setTimeout(10_000, () => socket.destroy(new Error(`Redis did not answer to ${line}`)));
    socket.setEncoding("utf8").on("data", (part) => {
      text += part;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
  });
}

/** Returns how much the server has sent: the number of ZooKeeper's packets (replies and events), or of Redis's bytes; 0 for postgres. */
export async function delivered(driver: Driver): Promise<number> {
  if (driver === "postgres") return 0;
  if (driver === "zookeeper") return sum(await counters(serverUrl(driver)), "packets_sent");
  return Number(/total_net_output_bytes:(\d+)/.exec(await askRedis("INFO stats"))?.[1]);
}
