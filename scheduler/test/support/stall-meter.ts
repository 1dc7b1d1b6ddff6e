import { systemClock } from "../../src/base/clock.ts";

const everyMs = 20;

/**
 * The time for which the machine gave an idle process no processor. Lateness of other processes is compared with it: processor time used by
 * other programs is not their lateness.
 */
export class StallMeter {
  #longestMs = 0;
  #lastMs = systemClock.monotonic();
  readonly #timer = setInterval(() => {
    const nowMs = systemClock.monotonic();
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#lastMs - everyMs);
    this.#lastMs = nowMs;
  }, everyMs);

  /** @returns the longest stall since it was made */
  stop(): number {
    clearInterval(this.#timer);
    return Math.round(this.#longestMs);
  }
}
