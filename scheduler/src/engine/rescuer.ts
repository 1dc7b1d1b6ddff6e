import type { Clock } from "../clock.ts";
import type { Membership } from "../coordination.ts";
import type { Log } from "../log.ts";
import type { Pulse, Store } from "../store.ts";
import type { StoreClock } from "../store-clock.ts";
import type { Planner } from "./planner.ts";
import { SingleFlight } from "./single-flight.ts";

export interface RescuerOptions {
  store: Store;
  membership: Membership;
  planner: Planner;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  horizonMs: number;
  /** How close a slot may come unplanned before any node plans it; a leader that lives plans long before. */
  aheadMs: number;
}

/**
 * Makes true: every slot is planned before its time, whoever leads or does not. A pulse tells the earliest slot that no
 * one has accepted; since that only moves forward, there is nothing to ask until it is near. Waiting for its time plus a
 * grace instead made slots 280 ms late whenever leaders died for longer than the horizon.
 */
export class Rescuer {
  readonly #options: RescuerOptions;
  readonly #flight: SingleFlight;
  #cancel: () => void = () => undefined;

  constructor(options: RescuerOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("rescuer", options.log, () => this.#rescue());
  }

  onPulse({ nextSlotMs }: Pulse): void {
    this.#cancel();
    if (nextSlotMs === null) return;
    const { clock, storeClock, aheadMs } = this.#options;
    this.#cancel = clock.after(storeClock.until(nextSlotMs - aheadMs), () => void this.#flight.run());
  }

  /** Looks now, and then asks for a pulse. */
  run(): Promise<void> {
    return this.#flight.run();
  }

  stop(): Promise<void> {
    this.#cancel();
    return this.#flight.stop();
  }

  async #rescue(): Promise<void> {
    const { store, membership, planner, storeClock, aheadMs, horizonMs, log } = this.#options;
    if (!membership.trusted()) return;
    const [forgotten] = await store.plans.due(storeClock.now() + aheadMs, 1);
    if (forgotten) {
      log.info(
        { node: membership.node, leftMs: Math.round(forgotten.nextSlotMs - storeClock.now()) },
        "planning what no leader planned",
      );
      await planner.plan(storeClock.now() + horizonMs, membership.term());
    }
    membership.refresh();
  }
}
