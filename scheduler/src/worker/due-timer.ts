import type { Clock } from "../clock.ts";

/** Calls once, when the next run is due: what is due already in this turn of the event loop, since a timer takes a millisecond at least. */
export class DueTimer {
  readonly #clock: Clock;
  #cancel = (): void => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** In place of what was set before. */
  set(inMs: number, fire: () => void): void {
    this.#cancel();
    if (inMs > 0) {
      this.#cancel = this.#clock.after(inMs, fire);
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
