import { type Clock, pause } from "../clock.ts";

/** Waits for a moment at which nothing is held any more. */
export class Idle {
  readonly #clock: Clock;
  readonly #isSo: () => boolean;
  #waiting: AbortController[] = [];

  constructor(clock: Clock, isSo: () => boolean) {
    this.#clock = clock;
    this.#isSo = isSo;
  }

  /** To be called when it may have become so. */
  look(): void {
    if (this.#isSo()) for (const one of this.#waiting.splice(0)) one.abort();
  }

  /** @returns whether it came about within `ms` */
  async within(ms: number): Promise<boolean> {
    if (this.#isSo()) return true;
    const waited = new AbortController();
    this.#waiting.push(waited);
    await pause(this.#clock, ms, waited.signal);
    return this.#isSo();
  }
}
