import { type Clock, EarliestTimer } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { SingleFlight } from "./single-flight.ts";

export interface DispatcherOptions {
  store: Store;
  membership: Membership;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  graceMs: number;
}

/** How long at most a held run or a join waits for the next sweep if a process crashed between two statements or a signal was lost. */
const sweepMs = 30_000;

/**
 * Guarantees that a run that waits for a concurrency limit is judged when it comes due (it is skipped, or replaces a run that is asked to
 * end), that no slot stays free while a run waits, and that a join begins once the last child has ended. The statements that end runs do
 * most of this work.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #flight: SingleFlight;
  readonly #timer: EarliestTimer;
  readonly #joining: SingleFlight;
  readonly #joinTimer: EarliestTimer;
  /** Parents with a child that ended without a worker. */
  #parents = new Set<number>();
  #sweptAt: number;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#sweptAt = options.clock.monotonic();
    this.#flight = new SingleFlight("dispatcher", options.log, () => this.#dispatch());
    this.#timer = new EarliestTimer(options.clock, () => void this.#flight.run());
    this.#joining = new SingleFlight("dispatcher", options.log, () => this.#join());
    this.#joinTimer = new EarliestTimer(options.clock, () => void this.#joining.run());
  }

  onPulse({ nextHeldMs, gated }: Pulse): void {
    const { clock, membership } = this.#options;
    const leads = membership.term() !== null;
    if (leads && gated && clock.monotonic() - this.#sweptAt >= sweepMs) {
      this.#sweptAt = clock.monotonic();
      void this.#flight.run();
    }
    if (nextHeldMs !== null) this.#wakeAt(nextHeldMs);
  }

  /** A run must be judged at that time. */
  onHeld(dueMs: number): void {
    this.#wakeAt(dueMs);
  }

  /** Judges all held runs now: the signal about a held run may have been lost, and no pulse reports runs that wait in line. */
  onResync(): void {
    this.#wakeAt(this.#options.storeClock.now());
  }

  /** A child of this run ended without a worker. */
  onChildEnded(parentId: number): void {
    this.#parents.add(parentId);
    this.#joinTimer.within(this.#afterLeaderMs());
  }

  async stop(): Promise<void> {
    this.#timer.close();
    this.#joinTimer.close();
    await Promise.all([this.#flight.stop(), this.#joining.stop()]);
  }

  #wakeAt(heldMs: number): void {
    this.#timer.within(this.#options.storeClock.until(heldMs + this.#afterLeaderMs()));
  }

  /** The leader acts at once; other nodes act `graceMs` later, in case the leader is gone. */
  #afterLeaderMs(): number {
    const { membership, graceMs } = this.#options;
    return membership.term() === null ? graceMs : 0;
  }

  async #join(): Promise<void> {
    const { store, membership, storeClock } = this.#options;
    const parents = [...this.#parents];
    this.#parents.clear();
    // Parents that are not handled now are left to the sweep.
    if (membership.trusted() && parents.length > 0) await store.flow.join(parents, storeClock.now());
  }

  async #dispatch(): Promise<void> {
    const { store, membership, storeClock } = this.#options;
    if (!membership.trusted()) return;
    const nowMs = storeClock.now();
    const nextMs = await store.plans.admitHeld(nowMs, nowMs);
    // A run that is due and still held waits for a slot; it is judged when a run ends and frees one.
    if (nextMs !== null && nextMs > nowMs) this.#wakeAt(nextMs);
  }
}
