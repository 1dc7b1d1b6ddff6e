import type { Clock } from "../../../scheduler/src/base/clock.ts";
import type { Universe } from "./universe.ts";

/** The smallest delay in ms. Adding a smaller one to a floating-point time changes nothing, so a timer would fire early without end. */
const leastMs = 1e-3;

/**
 * One process of the cluster from its start to its end: its timers, its incoming messages and its clocks. A killed process receives
 * nothing. While it is stopped (SIGSTOP), events wait; afterwards timers fire first, then messages arrive, as in Node.
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
   * @param clocks rate: speed of the machine's clocks, 1 if exact; baseMs: the monotonic clock's value at the start; wallAheadMs: how far
   * the wall clock is ahead of the universe's time
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

  /** Delivers an event from outside the process; a stopped process gets it when it continues. */
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
    // Each timer and message becomes a separate event, so that the consequences of one have run before the next.
    for (const one of [...timers, ...inbox]) this.universe.after(0, () => this.deliver(one));
  }

  kill(): void {
    this.#alive = false;
    this.#timers = undefined;
    this.#inbox = [];
  }
}
