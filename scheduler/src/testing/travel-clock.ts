import type { Clock } from "../base/clock.ts";
import { Heap } from "../base/heap.ts";

/** The tolerance for comparing wall times, in ms. Wall times are about 10^12 ms, so their floating-point fractions are imprecise. */
const roundingMs = 0.001;

interface Timer {
  fire: (() => void) | undefined;
}

/** A clock that moves only on request. The difference between its monotonic time and its wall time never changes. */
export class TravelClock implements Clock {
  readonly leaps = true;
  readonly #beganMs: number;
  #monoMs = 0;
  readonly #timers = new Heap<Timer>();

  constructor(wallMs: number) {
    this.#beganMs = wallMs;
  }

  monotonic(): number {
    return this.#monoMs;
  }

  wall(): number {
    return this.#beganMs + this.#monoMs;
  }

  after(ms: number, fire: () => void): () => void {
    const timer: Timer = { fire };
    this.#timers.push(this.#monoMs + Math.max(0, ms), timer);
    return () => {
      timer.fire = undefined;
    };
  }

  /** The wall time of the next timer; null if there is no timer. */
  get nextMs(): number | null {
    for (let key = this.#timers.least; key !== undefined; key = this.#timers.least) {
      const first = this.#timers.pop() as Timer;
      if (first.fire === undefined) continue; // the timer was cancelled
      this.#timers.push(key, first);
      break;
    }
    return this.#timers.least === undefined ? null : this.#beganMs + this.#timers.least;
  }

  /** Moves at once to a wall time. Timers due by then fire once each, in order. */
  moveTo(wallMs: number): void {
    this.#monoMs = Math.max(this.#monoMs, wallMs - this.#beganMs);
    const due: Timer[] = [];
    while (this.#timers.least !== undefined && this.#timers.least <= this.#monoMs + roundingMs)
      due.push(this.#timers.pop() as Timer);
    for (const timer of due) {
      const { fire } = timer;
      timer.fire = undefined;
      fire?.();
    }
  }
}
