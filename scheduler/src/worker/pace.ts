import { guardMs } from "./bounds.ts";

/** Until durations are known, handlers are taken to be quick; giving back corrects a wrong guess. */
const assumedDurationMs = 1;
const shortestMs = 0.01;

/** How fast this worker gets through runs. */
export class Pace {
  readonly #concurrency: number;
  #durationMs = assumedDurationMs;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /** Recent runs count most; a burst of quick ones after a slow phase is learnt within some tens of runs. */
  took(ms: number): void {
    this.#durationMs += (ms - this.#durationMs) / 20;
  }

  /** What runs keeps others waiting for so long: without this, all that is given back would be claimed again until one ends. */
  tookAtLeast(ms: number): void {
    this.#durationMs = Math.max(this.#durationMs, ms);
  }

  /** How many it can expect to have started after so many ms, those that run now included. */
  startable(ms: number): number {
    return this.#concurrency + Math.ceil((this.#concurrency * ms) / Math.max(this.#durationMs, shortestMs));
  }
}

/** How long until the next claim, given when the next run is due that the last one left. */
export class NextClaim {
  readonly #claimAheadMs: number;
  #vain = 0;

  constructor(claimAheadMs: number) {
    this.#claimAheadMs = claimAheadMs;
  }

  /**
   * All that is due within the window has been claimed, so the next look can wait for half of it and find more at once.
   * What is due and brought nothing is locked: by another claim for a moment, or by a transaction of which nobody knows how
   * long it takes, so each vain look waits twice as long as the one before.
   */
  afterMs(claimed: number, untilDueMs: number): number {
    const aheadMs = this.#claimAheadMs;
    this.#vain = claimed > 0 || untilDueMs > 0 ? 0 : this.#vain + 1;
    const leastMs = Math.min(guardMs, 2 ** Math.max(0, this.#vain - 1));
    return Math.max(untilDueMs - aheadMs, Math.min(aheadMs / 2, untilDueMs / 2), leastMs);
  }
}
