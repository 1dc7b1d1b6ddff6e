import type { Clock } from "../../../scheduler/src/base/clock.ts";
import type { Universe } from "./universe.ts";

/** The smallest delay in ms. A smaller one would be lost in floating-point addition, and the timer would fire too early repeatedly. */
const leastMs = 1e-3;

/**
 * One process of the cluster, from its start to its end: its incoming events, and its clocks. Once it is killed, nothing reaches it; while
 * it is stopped (SIGSTOP), everything waits: timers come first afterwards, then messages from outside, as in Node.
 */
export class Machine implements Clock {
  readonly name: string;
  readonly universe: Universe;
  readonly #bornMs: number;
  readonly #baseMs: number;
  readonly #rate: number;
  #wallAheadMs: number;
  #alive = true;
  #timers: (() => void)[] | undefined;
  #inbox: (() => void)[] = [];

  /**
   * @param clocks rate: the speed of its quartz, 1 if exact; baseMs: its monotonic clock at the start; wallAheadMs: how far its wall clock
   * is ahead of the universe's time
   */
  constructor(name: string, universe: Universe, clocks: { rate: number; baseMs: number; wallAheadMs: number }) {
    this.name = name;
    this.universe = universe;
    this.#bornMs = universe.nowMs;
    this.#baseMs = clocks.baseMs;
    this.#rate = clocks.rate;
    this.#wallAheadMs = clocks.wallAheadMs;
  }

  get alive(): boolean {
    return this.#alive;
  }

  get isPaused(): boolean {
    return this.#timers !== undefined;
  }

  monotonic(): number {
    return this.#baseMs + (this.universe.nowMs - this.#bornMs) * this.#rate;
  }

  wall(): number {
    return this.universe.nowMs + this.#wallAheadMs;
  }

  after(ms: number, fire: () => void): () => void {
    let cancelled = false;
    const due = () => {
      if (cancelled || !this.#alive) return;
      if (this.#timers) this.#timers.push(due);
      else fire();
    };
    const cancel = this.universe.after(ms > 0 ? Math.max(leastMs, ms) / this.#rate : 0, due);
    return () => {
      cancelled = true;
      cancel();
    };
  }

  /** Delivers an event from outside the process. */
  deliver(what: () => void): void {
    if (!this.#alive) return;
    if (this.#timers) this.#inbox.push(what);
    else what();
  }

  stepWall(ms: number): void {
    this.#wallAheadMs += ms;
  }

  pause(): void {
    this.#timers ??= [];
  }

  resume(): void {
    const timers = this.#timers ?? [];
    const inbox = this.#inbox.splice(0);
    this.#timers = undefined;
    // Each as an event of its own: its consequences have run before the next.
    for (const one of [...timers, ...inbox]) this.universe.after(0, () => this.deliver(one));
  }

  kill(): void {
    this.#alive = false;
    this.#timers = undefined;
    this.#inbox = [];
  }
}
