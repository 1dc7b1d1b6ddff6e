import { systemClock } from "../../src/base/clock.ts";

const everyMs = 20;

/**
 * Measures the longest time for which the machine delayed this process, which must be idle. Tests compare the lateness of other
 * processes with this time, because the processor time that other programs use is not lateness of Carillon.
 */
export class StallMeter {
  #longestMs = 0;
  #lastMs = systemClock.monotonic();
  readonly #timer = setInterval(() => {
    const nowMs = systemClock.monotonic();
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#lastMs - everyMs);
    this.#lastMs = nowMs;
  }, everyMs);

  /** Stops measuring. @returns the longest delay in ms */
  stop(): number {
    clearInterval(this.#timer);
    return Math.round(this.#longestMs);
  }
}
