import type { Clock } from "../../src/base/clock.ts";

/** A clock that advances only when a test calls `advance`. Each node of a test has its own clock. */
export class VirtualClock implements Clock {
  #monoMs = 1_000;
  readonly #wallAheadMs: number;
  #timers: { atMs: number; fire: () => void }[] = [];

  constructor(wallMs: number) {
    this.#wallAheadMs = wallMs - this.#monoMs;
  }

  monotonic(): number {
    return this.#monoMs;
  }

  wall(): number {
    return this.#monoMs + this.#wallAheadMs;
  }

  after(ms: number, fire: () => void): () => void {
    const timer = { atMs: this.#monoMs + Math.max(0, ms), fire };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Advances by `ms`, and fires the timers that come due, in order. Does not wait for asynchronous work that the timers start. */
  advance(ms: number): void {
    const endMs = this.#monoMs + ms;
    for (;;) {
      const next = this.#timers.reduce<{ atMs: number; fire: () => void } | undefined>(
        (first, timer) => (timer.atMs <= endMs && (!first || timer.atMs < first.atMs) ? timer : first),
        undefined,
      );
      if (!next) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#monoMs = Math.max(this.#monoMs, next.atMs);
      next.fire();
    }
    this.#monoMs = endMs;
  }
}
