import type { Clock } from "../../base/clock.ts";

/** So short that it is the next turn of the event loop. */
const turnMs = 0.001;

/** Calls once, when the next run is due: what is due already in this turn of the event loop, since a timer takes a millisecond at least. */
export class DueTimer {
  readonly #clock: Clock;
  #cancel = (): void => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** In place of what was set before. @param yields not in this turn, but as soon as what was begun in it is on its way */
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
