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

/**
 * The interval in ms at which the leader checks held runs and joins, in case a process crashed between two statements or a signal was lost.
 */
const sweepMs = 30_000;

/**
 * Guarantees that a run that waits for a concurrency limit is decided on when it comes due (it may be skipped, or replace a running one),
 * that no slot of concurrency stays free while a run waits for it, and that a join begins once the last child has ended. Most of this is
 * done by the statements that end runs; this class does the rest.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #flight: SingleFlight;
  readonly #timer: EarliestTimer;
  readonly #joining: SingleFlight;
  readonly #joinTimer: EarliestTimer;
  /** Parents of children that ended without having been claimed. */
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

  /** Called when a run is held that is due at `dueMs`; the run is decided on at that time. */
  onHeld(dueMs: number): void {
    this.#wakeAt(dueMs);
  }

  /**
   * Decides on all held runs, at once or, on a node that does not lead, after `graceMs`: signals about them may have been lost, and
   * heartbeats do not report runs in a bounded queue.
   */
  onResync(): void {
    this.#wakeAt(this.#options.storeClock.now());
  }

  /** Called when a child of this run has ended without having been claimed. */
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

  /** The delay before this node acts, in ms: 0 for the leader, `graceMs` for other nodes, which act only in case the leader is gone. */
  #afterLeaderMs(): number {
    const { membership, graceMs } = this.#options;
    return membership.term() === null ? graceMs : 0;
  }

  async #join(): Promise<void> {
    const { store, membership, storeClock } = this.#options;
    const parents = [...this.#parents];
    this.#parents.clear();
    // If this process is not trusted, these parents are handled by the leader's next check.
    if (membership.trusted() && parents.length > 0) await store.flow.join(parents, storeClock.now());
  }

  async #dispatch(): Promise<void> {
    const { store, membership, storeClock } = this.#options;
    if (!membership.trusted()) return;
    const nowMs = storeClock.now();
    const nextMs = await store.plans.admitHeld(nowMs, nowMs);
    // A run that is due and still held needs no timer: it is decided on when another run ends.
    if (nextMs !== null && nextMs > nowMs) this.#wakeAt(nextMs);
  }
}
