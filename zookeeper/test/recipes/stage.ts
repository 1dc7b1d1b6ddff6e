import { connect } from "../../src/client/client.ts";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { sharedServer } from "../support/servers.ts";

export { until } from "../support/until.ts";

/**
 * The session timeout in ms for tests that wait for the end of a session. The client ends the session after 4.5 s without an answer, so
 * a pause of the machine of two seconds does not end it too early.
 */
export const endingSessionMs = 6_000;

/** Opens clients for tests; `closeAll` closes those that are open. */
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
