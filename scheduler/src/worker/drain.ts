import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import { handOverMs } from "./bounds.ts";

export interface DrainHost {
  membership: Pick<Membership, "node">;
  log: Log;
  /** Gives back what waits, but for what is due within `sparedMs` and can be started by then. */
  giveBack(sparedMs: number): void;
  claim(): void;
}

/**
 * A worker whose node an operator has drained: the store gives it no run, so it asks for none, and gives back what has not started. Each beat
 * tells whether that is so; a stop drains too, by itself.
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

  /** Runs came, by a claim that was made before. */
  look(): void {
    if (this.#on) this.#host.giveBack(handOverMs);
  }
}
