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

/** A held run or a join that a crash between two statements, or a lost signal, left waiting does so for at most this long. */
const sweepMs = 30_000;

/**
 * Makes true: a run that waits for a place is judged when it comes due (skipped, or put in the place of one that is
 * asked to end), a free place never stays free while a run waits, and a join begins once the last child has ended. The ends of
 * runs do most of this by themselves.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #flight: SingleFlight;
  readonly #timer: EarliestTimer;
  readonly #joining: SingleFlight;
  readonly #joinTimer: EarliestTimer;
  /** Runs of which a child has ended that no worker had. */
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

  /** A run must be judged then. */
  onHeld(dueMs: number): void {
    this.#wakeAt(dueMs);
  }

  /** Of a run that must be judged nobody may have heard, and of those that wait in line no pulse tells. */
  onResync(): void {
    this.#wakeAt(this.#options.storeClock.now());
  }

  /** A child of this run has ended that no worker had. */
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

  /** The leader acts at once, the others a grace later, should it be gone. */
  #afterLeaderMs(): number {
    const { membership, graceMs } = this.#options;
    return membership.term() === null ? graceMs : 0;
  }

  async #join(): Promise<void> {
    const { store, membership, storeClock } = this.#options;
    const parents = [...this.#parents];
    this.#parents.clear();
    // What is not asked now is left to the sweep.
    if (membership.trusted() && parents.length > 0) await store.flow.join(parents, storeClock.now());
  }

  async #dispatch(): Promise<void> {
    const { store, membership, storeClock } = this.#options;
    if (!membership.trusted()) return;
    const nowMs = storeClock.now();
    const nextMs = await store.plans.admitHeld(nowMs, nowMs);
    // One that is due and still held waits for a place; its turn comes with the end that frees one.
    if (nextMs !== null && nextMs > nowMs) this.#wakeAt(nextMs);
  }
}
