import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import { handOverMs } from "./bounds.ts";

export interface DrainHost {
  membership: Pick<Membership, "node">;
  log: Log;
  /** Gives back waiting runs, except those due within `sparedMs` that can start by then. */
  giveBack(sparedMs: number): void;
  claim(): void;
}

/**
 * Tracks whether an operator has drained the node of this worker. Each heartbeat returns this state. The worker of a drained node
 * makes no claims and gives back its runs that have not started, except those about to start. A stopping worker ignores the
 * drain, because its stop gives the runs back.
 */
export class Drain {
  readonly #host: DrainHost;
  #on = false;

  constructor(host: DrainHost) {
    this.#host = host;
  }

  get on(): boolean {
    return this.#on;
  }

  pulse(draining: boolean, stopping: boolean): void {
    if (draining === this.#on || stopping) return;
    this.#on = draining;
    const { membership, log, claim } = this.#host;
    const { node } = membership;
    if (draining) log.warn({ node }, `this node is drained, and takes no runs: see \`carillon nodes resume ${node}\``);
    else log.info({ node }, "this node takes runs again");
    this.look();
    if (!draining) claim();
  }

  /** Called when runs arrived from a claim made before the drain. */
  look(): void {
    if (this.#on) this.#host.giveBack(handOverMs);
  }
}
