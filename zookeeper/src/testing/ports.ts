import { createServer } from "node:net";

/**
 * The lowest port. All ports are below the range that systems use for outgoing connections, so that a restarted server finds its port still
 * free.
 */
const lowest = 20_000;
/**
 * Number of port ranges, and ports per range. The process id determines the range, so that concurrent test processes usually use separate
 * ranges, and then none takes the port of another process's killed server.
 */
const [ranges, portsEach] = [60, 200];

const given = new Set<number>();

/** Returns a loopback port that was free a moment ago. This process never returns the same port twice. */
export async function freePort(): Promise<number> {
  for (let tries = 0; ; tries++) {
    const range = (process.pid + Math.floor(tries / portsEach)) % ranges;
    const port = lowest + range * portsEach + Math.floor(Math.random() * portsEach);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
