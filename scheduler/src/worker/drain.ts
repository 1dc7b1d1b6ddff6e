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
 * Tracks whether an operator has drained the node of this worker. The store gives a drained worker no runs, so the worker claims none, and
 * gives back the runs that have not started. Each heartbeat returns whether the node is drained. A stopping worker ignores the drain,
 * because it gives its runs back by itself.
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
