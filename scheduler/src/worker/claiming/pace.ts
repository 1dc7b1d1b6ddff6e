/** Until durations are known, handlers are taken to be quick; giving back corrects a wrong guess. */
const assumedDurationMs = 1;
const shortestMs = 0.01;

/** How fast this worker gets through runs. */
export class Pace {
  readonly #concurrency: number;
  #durationMs = assumedDurationMs;
  /** No place has come free for what waited. */
  #stuck = false;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /**
   * Recent runs count most; a burst of quick ones after a slow phase is learnt within some tens of runs.
   * @returns whether claims waited for this end
   */
  took(ms: number): boolean {
    const stuck = this.#stuck;
    this.#stuck = false;
    this.#durationMs += (ms - this.#durationMs) / 20;
    return stuck;
  }

  /**
   * What runs keeps others waiting for so long: without this, all that is given back would be claimed again until one ends.
   * @param all nothing was spared: nothing more is expected to start before one ends, and another may have a place meanwhile
   */
  gaveBack(waitedMs: number, all: boolean): void {
    this.#durationMs = Math.max(this.#durationMs, waitedMs);
    if (all) this.#stuck = true;
  }

  /** How many it can expect to have started after so many ms, those that run now included. */
  startable(ms: number): number {
    return (
      this.#concurrency +
      (this.#stuck ? 0 : Math.ceil((this.#concurrency * ms) / Math.max(this.#durationMs, shortestMs)))
    );
  }
}
