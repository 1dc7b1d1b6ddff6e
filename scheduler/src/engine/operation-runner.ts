import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { SingleFlight } from "./single-flight.ts";

/** The interval in ms at which an operation is tried again while another process has locked it. */
const elsewhereMs = 1_000;

export interface OperationRunnerOptions {
  store: Store;
  membership: Membership;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
}

/**
 * Guarantees that every bulk operation proceeds, in small steps that alternate between operations, until it has ended. The leader does
 * this, so that other nodes are not burdened. The store lets any number of processes execute steps of the same operation, so a change of
 * leaders loses no step and counts none twice.
 */
export class OperationRunner {
  readonly #options: OperationRunnerOptions;
  readonly #flight: SingleFlight;
  #cancel: () => void = () => undefined;
  #stopped = false;

  constructor(options: OperationRunnerOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("operation runner", options.log, () => this.#lead());
  }

  onPulse({ nextOperationMs }: Pulse): void {
    if (nextOperationMs === null || nextOperationMs === undefined) return;
    if (nextOperationMs <= this.#options.storeClock.now()) void this.run();
  }

  run(): Promise<void> {
    return this.#options.membership.term() === null ? Promise.resolve() : this.#flight.run();
  }

  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    return this.#flight.stop();
  }

  async #lead(): Promise<void> {
    const { store, membership, clock, storeClock } = this.#options;
    this.#cancel();
    while (!this.#stopped && membership.term() !== null) {
      const askedMs = storeClock.now();
      const { stepped, nextMs } = await store.operations.step(askedMs);
      if (stepped !== null) continue;
      if (nextMs === null) return;
      // An operation with a rate waits for its next time. An operation whose time has passed is locked by another process, which may be
      // blocked; it is tried again every second.
      const waitMs = nextMs <= askedMs ? elsewhereMs : storeClock.until(nextMs);
      this.#cancel = clock.after(waitMs, () => void this.run());
      return;
    }
  }
}
