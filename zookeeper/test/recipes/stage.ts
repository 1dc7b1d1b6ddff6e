import { connect } from "../../src/client/client.ts";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { sharedServer } from "../support/servers.ts";

export { until } from "../support/until.ts";

/**
 * The session timeout where a test waits until a session ends. The client ends it after 4.5 s without an answer, so a machine
 * that stands still for two seconds does not end it before the test does.
 */
export const endingSessionMs = 6_000;

/** Clients of one test, closed with it. */
export class Clients {
  readonly #open: ZooKeeper[] = [];
  readonly #hosts: string;

  constructor(hosts = sharedServer()) {
    this.#hosts = hosts;
  }

  async connect(options: Parameters<typeof connect>[1] = {}, hosts = this.#hosts): Promise<ZooKeeper> {
    const zk = await connect(hosts, { sessionTimeoutMs: 10_000, connectTimeoutMs: 60_000, ...options });
    this.#open.push(zk);
    return zk;
  }

  async closeAll(): Promise<void> {
    await Promise.all(this.#open.splice(0).map((zk) => zk.close()));
  }
}
