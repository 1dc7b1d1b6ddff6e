/**
 * The time during which this process may rely on being the only holder of a grace lock, called the belief in this file. It lasts while
 * this process holds the lock, and for most of the grace period afterwards.
 */
import type { Holding, LockClock } from "./place.ts";

/** This share of the grace is left unused as a safety margin, because two monotonic clocks may run at slightly different speeds. */
const driftShare = 0.05;
/** While the lock is held, its remaining time is read again after a quarter of that time, at the earliest after `shortestSampleMs`. */
const samplesPerLapse = 4;
const shortestSampleMs = 20;

export class Belief {
  readonly #clock: LockClock;
  readonly #graceMs: number;
  readonly #holding: () => Holding | undefined;
  readonly #over: () => void;
  #untilMono = Number.NEGATIVE_INFINITY;
  #cancel: () => void = () => undefined;

  /** @param holding returns the current holding @param over called once the belief has ended; see `watch` */
  constructor(clock: LockClock, graceMs: number, holding: () => Holding | undefined, over: () => void) {
    this.#clock = clock;
    this.#graceMs = graceMs;
    this.#holding = holding;
    this.#over = over;
  }

  /** True while the belief lasts, by the monotonic clock at the time of the call. */
  get stands(): boolean {
    this.#renew();
    return this.#leftMs > 0;
  }

  /** Checks at intervals whether the belief lasts. Stops when the belief has ended, and then calls `over`; or when `stop` is called. */
  watch(): void {
    this.stop();
    const holdingMs = this.#renew();
    const nextMs = holdingMs > 0 ? Math.max(shortestSampleMs, holdingMs / samplesPerLapse) : this.#leftMs;
    if (nextMs > 0) this.#cancel = this.#clock.after(nextMs, () => this.watch());
    else this.#over();
  }

  /** Records that the holding has ended, perhaps earlier than expected. The belief then lasts for at most this contender's own grace. */
  lapse(): void {
    this.#untilMono = Math.min(this.#untilMono, this.#clock.monotonic() + this.#ownGraceMs);
  }

  stop(): void {
    this.#cancel();
  }

  get #ownGraceMs(): number {
    return this.#graceMs * (1 - driftShare);
  }

  get #leftMs(): number {
    return Math.max(0, this.#untilMono - this.#clock.monotonic());
  }

  /** Extends the belief if the lock is held. @returns the remaining ms of the holding; 0 if it is not held */
  #renew(): number {
    const holdingMs = this.#holding()?.remainingMs ?? 0;
    if (holdingMs > 0) this.#untilMono = this.#clock.monotonic() + holdingMs + this.#ownGraceMs;
    return holdingMs;
  }
}
