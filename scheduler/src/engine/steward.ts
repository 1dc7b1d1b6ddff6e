import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { SingleFlight } from "./single-flight.ts";

/** The interval after which an operation that another process is working on is looked at again. */
const elsewhereMs = 1_000;

export interface StewardOptions {
  store: Store;
  membership: Membership;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
}

/**
 * Guarantees that every operation that was begun goes on, in small steps that take turns, until it has ended. The leader does this, so that
 * other nodes are free. The store lets any number of processes step the same operation, so a change of leaders neither loses nor repeats a
 * step.
 */
export class Steward {
  readonly #options: StewardOptions;
  readonly #flight: SingleFlight;
  #cancel: () => void = () => undefined;
  #stopped = false;

  constructor(options: StewardOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("steward", options.log, () => this.#lead());
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
      // An operation with a rate waits for its next time. An operation that was passed over is locked by another process, which may have
      // stalled: until it is free, the steward steps again once a second.
      const waitMs = nextMs <= askedMs ? elsewhereMs : storeClock.until(nextMs);
      this.#cancel = clock.after(waitMs, () => void this.run());
      return;
    }
  }
}
