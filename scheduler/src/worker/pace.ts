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
