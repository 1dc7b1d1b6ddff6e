import type { Clock } from "../../base/clock.ts";

/** Short enough to be the next turn of the event loop. */
const turnMs = 0.001;

/**
 * Calls once, when the next run is due. A run that is due already is started in this turn of the event loop, since a timer takes at least a
 * millisecond.
 */
export class DueTimer {
  readonly #clock: Clock;
  #cancel = (): void => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Replaces the previous timer. @param yields fire not in this turn, but once the operations begun in it are on their way */
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
