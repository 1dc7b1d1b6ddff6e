/** Handlers are assumed to be quick until durations are measured. If the guess is wrong, the worker gives runs back, which corrects it. */
const assumedDurationMs = 1;
const shortestMs = 0.01;

/** Measures how fast this worker gets through runs. */
export class Pace {
  readonly #concurrency: number;
  #durationMs = assumedDurationMs;
  /** True if runs wait and no slot has become free for them. */
  #stuck = false;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /**
   * Records that a run took `ms`. Recent runs count most, so after a slow phase a burst of quick runs is learnt within some tens of runs.
   * @returns whether claims waited for a run to end
   */
  took(ms: number): boolean {
    const stuck = this.#stuck;
    this.#stuck = false;
    this.#durationMs += (ms - this.#durationMs) / 20;
    return stuck;
  }

  /**
   * Records that waiting runs were given back because the running handlers kept them waiting for `waitedMs`. Without this record, the
   * worker would claim all these runs again until a handler ends.
   * @param all true if every waiting run was given back: no run is then expected to start before one ends, and another worker may have a
   * free slot
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
