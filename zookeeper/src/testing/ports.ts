import { createServer } from "node:net";

/**
 * Below the range from which systems take the ports of outgoing connections, so that a server that was killed finds its
 * port free again when it comes back.
 */
const lowest = 20_000;
/**
 * Test processes that run side by side get ports from ranges of their own: one must not take what another's server, killed
 * for a moment, comes back to. Process ids that follow each other are far from sharing one.
 */
const [ranges, portsEach] = [60, 200];

const given = new Set<number>();

/** A loopback port that was free a moment ago and that this process never gives twice. */
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
