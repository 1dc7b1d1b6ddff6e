import type { Clock } from "../base/clock.ts";

/** How many of the last heartbeats count. A store that is slow delays most of them; a busy machine delays some. */
const kept = 5;

/**
 * Measures how long the store takes to answer this process's heartbeats. Time in which this process's own event loop executed code does not
 * count, because an answer that arrives meanwhile is only read afterwards.
 */
export class StoreWait {
  readonly #clock: Clock;
  /** In ms, the oldest first. */
  readonly #last: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called before a request. @returns a function to be called when its answer has arrived */
  begin(): () => void {
    const clock = this.#clock;
    const idleMs = () => clock.monotonic() - (clock.busyMs?.() ?? 0);
    const began = idleMs();
    return () => {
      this.#last.push(Math.max(0, idleMs() - began));
      if (this.#last.length > kept) this.#last.shift();
    };
  }

  /** The median of the last answers, in ms; null until there are as many as count. */
  get medianMs(): number | null {
    return this.#last.length < kept ? null : (this.#last.toSorted((a, b) => a - b)[Math.floor(kept / 2)] as number);
  }
}
