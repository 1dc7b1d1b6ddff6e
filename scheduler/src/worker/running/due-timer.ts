import type { Clock } from "../../base/clock.ts";

/** Delay in ms that makes the timer fire in the next turn of the event loop. */
export const turnMs = 0.001;

/**
 * A single timer for the next due run. If that run is already due, the callback is called in a microtask, because a timer takes at
 * least a millisecond.
 */
export class DueTimer {
  readonly #clock: Clock;
  #cancel = (): void => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Cancels the previous timer and sets a new one.
   * @param yields if true, the callback is called no earlier than in the next turn of the event loop, even if the run is due, so that
   * requests that began in this turn are sent first
   */
  set(inMs: number, fire: () => void, yields = false): void {
    this.#cancel();
    if (inMs > 0 || yields) {
      this.#cancel = this.#clock.after(Math.max(inMs, turnMs), fire);
      return;
    }
    let wanted = true;
    this.#cancel = () => {
      wanted = false;
    };
    queueMicrotask(() => {
      if (wanted) fire();
    });
  }

  cancel(): void {
    this.#cancel();
  }
}
