import { type Clock, pause } from "../base/clock.ts";
import type { ClaimState } from "../run/claim.ts";

/**
 * Lets callers wait until no claimed run waits for its start and no handler runs. Verdicts may still be on their way to the store by then.
 */
export class Idle {
  readonly #clock: Clock;
  readonly #held: ReadonlyMap<number, { readonly state: ClaimState }>;
  readonly #waiting = new Set<AbortController>();

  constructor(clock: Clock, held: ReadonlyMap<number, { readonly state: ClaimState }>) {
    this.#clock = clock;
    this.#held = held;
  }

  /** Called when the worker may have become idle. */
  look(): void {
    if (this.#waiting.size > 0 && this.#isSo()) for (const one of this.#waiting) one.abort();
  }

  /** @returns whether the worker became idle within `ms` */
  async within(ms: number): Promise<boolean> {
    if (this.#isSo()) return true;
    const waited = new AbortController();
    this.#waiting.add(waited);
    await pause(this.#clock, ms, waited.signal);
    this.#waiting.delete(waited);
    return this.#isSo();
  }

  #isSo(): boolean {
    for (const { state } of this.#held.values()) if (state !== "settling") return false;
    return true;
  }
}
