import { connect } from "../../src/client.ts";
import type { ZooKeeper } from "../../src/session.ts";
import { sharedServer } from "../support/servers.ts";

/** Clients of one test, closed with it. */
export class Clients {
  readonly #open: ZooKeeper[] = [];
  readonly #hosts: string;

  constructor(hosts = sharedServer()) {
    this.#hosts = hosts;
  }

  async connect(options: Parameters<typeof connect>[1] = {}, hosts = this.#hosts): Promise<ZooKeeper> {
    const zk = await connect(hosts, { sessionTimeoutMs: 10_000, ...options });
    this.#open.push(zk);
    return zk;
  }

  async closeAll(): Promise<void> {
    await Promise.all(this.#open.splice(0).map((zk) => zk.close()));
  }
}

/** Looks every few milliseconds until it is so: for conditions that nothing signals. */
export async function until(
  what: string,
  condition: () => unknown | Promise<unknown>,
  limitMs = 45_000,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not so after ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN;
}
