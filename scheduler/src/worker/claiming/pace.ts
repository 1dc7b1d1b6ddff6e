/** Handlers are assumed to be quick until durations are measured; giving runs back corrects a wrong guess. */
const assumedDurationMs = 1;
const shortestMs = 0.01;

/** Measures how fast this worker gets through runs. */
export class Pace {
  readonly #concurrency: number;
  #durationMs = assumedDurationMs;
  /** No slot has become free for the waiting runs. */
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
   * The running handlers keep others waiting for `waitedMs`: without this, all runs given back would be claimed again until one ends.
   * @param all none was spared: no start is expected before a run ends, and another worker may have a free slot meanwhile
   */
  gaveBack(waitedMs: number, all: boolean): void {
    this.#durationMs = Math.max(this.#durationMs, waitedMs);
    if (all) this.#stuck = true;
  }

  /** How many runs it can expect to have started after `ms`, including those that run now. */
  startable(ms: number): number {
    return (
      this.#concurrency +
      (this.#stuck ? 0 : Math.ceil((this.#concurrency * ms) / Math.max(this.#durationMs, shortestMs)))
    );
  }
}
