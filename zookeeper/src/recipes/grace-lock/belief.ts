/**
 * How long this process may rely on being the only holder of a grace lock: while it holds the lock, and for most of the grace
 * period after that.
 */
import type { Holding, LockClock } from "./place.ts";

/** The share of the grace that a cut-off owner leaves unused as a margin: the rates of two monotonic clocks differ by far less. */
const driftShare = 0.05;
/** The holding's remaining time is sampled at intervals of a quarter of that time, but no shorter than `shortestSampleMs`. */
const samplesPerLapse = 4;
const shortestSampleMs = 20;

export class Belief {
  readonly #clock: LockClock;
  readonly #graceMs: number;
  readonly #holding: () => Holding | undefined;
  readonly #over: () => void;
  #untilMono = Number.NEGATIVE_INFINITY;
  #cancel: () => void = () => undefined;

  /** @param holding returns the current holding @param over called once the belief has ended, see `watch` */
  constructor(clock: LockClock, graceMs: number, holding: () => Holding | undefined, over: () => void) {
    this.#clock = clock;
    this.#graceMs = graceMs;
    this.#holding = holding;
    this.#over = over;
  }

  /** Judged by the monotonic clock at the moment of the call. */
  get stands(): boolean {
    this.#renew();
    return this.#leftMs > 0;
  }

  /** Follows the holding, and the grace after it, until the belief ends or `stop` is called. */
  watch(): void {
    this.stop();
    const holdingMs = this.#renew();
    const nextMs = holdingMs > 0 ? Math.max(shortestSampleMs, holdingMs / samplesPerLapse) : this.#leftMs;
    if (nextMs > 0) this.#cancel = this.#clock.after(nextMs, () => this.watch());
    else this.#over();
  }

  /** Records that the holding ended, perhaps early: the other contenders' grace runs from now at the latest. */
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

  /** Extends the belief by the current holding. @returns ms left of the holding */
  #renew(): number {
    const holdingMs = this.#holding()?.remainingMs ?? 0;
    if (holdingMs > 0) this.#untilMono = this.#clock.monotonic() + holdingMs + this.#ownGraceMs;
    return holdingMs;
  }
}
