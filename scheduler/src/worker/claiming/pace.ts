/**
 * Assumed duration of a handler in ms until durations have been measured. If handlers are slower, the worker claims too many runs and gives
 * some back, which raises the estimate.
 */
const assumedDurationMs = 1;
const shortestMs = 0.01;

/** Estimates from the durations of runs how many runs this worker can start in a given time. */
export class Pace {
  readonly #concurrency: number;
  #durationMs = assumedDurationMs;
  /** True if waiting runs were given back and no run has ended since, so no slot has become free. */
  #stuck = false;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /**
   * Records that a run took `ms`. The estimate is a moving average over some twenty runs, so it follows a change between slow and quick
   * handlers within tens of runs.
   * @returns whether claims were waiting for a run to end
   */
  took(ms: number): boolean {
    const stuck = this.#stuck;
    this.#stuck = false;
    this.#durationMs += (ms - this.#durationMs) / 20;
    return stuck;
  }

  /**
   * Records that waiting runs were given back because the running handlers kept them waiting for `waitedMs`. Without this record, the
   * worker would claim all these runs again before a handler ends.
   * @param all true if this worker is to expect no further start until a run ends
   */
  gaveBack(waitedMs: number, all: boolean): void {
    this.#durationMs = Math.max(this.#durationMs, waitedMs);
    if (all) this.#stuck = true;
  }

  /** Returns how many runs this worker can expect to have started after `ms`, including those that run now. */
  startable(ms: number): number {
    return (
      this.#concurrency +
      (this.#stuck ? 0 : Math.ceil((this.#concurrency * ms) / Math.max(this.#durationMs, shortestMs)))
    );
  }
}
