import type { Clock } from "../../base/clock.ts";

/** Short enough to fire in the next turn of the event loop. */
const turnMs = 0.001;

/**
 * Calls once, when the next run is due. For a run that is already due, it calls in this turn of the event loop, because a timer takes at
 * least a millisecond.
 */
export class DueTimer {
  readonly #clock: Clock;
  #cancel = (): void => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Replaces the previous timer.
   * @param yields call in the next turn of the event loop even if the run is due, so that operations begun in this turn are sent first
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
