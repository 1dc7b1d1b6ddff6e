import { createServer } from "node:net";

/**
 * Below the range from which systems take the ports of outgoing connections, so that a server that was killed finds its
 * port free again when it comes back.
 */
const lowest = 20_000;
const highest = 31_999;

const given = new Set<number>();

/** A loopback port that was free a moment ago and that this process never gives twice. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest + 1));
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
