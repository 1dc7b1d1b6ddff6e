import type { Clock } from "../../base/clock.ts";
import { turnMs } from "./due-timer.ts";

/**
 * How long, in ms, the starts of due runs may keep a turn of the event loop. Handlers that return at once start by the ten thousand in it.
 */
const mostMs = 50;

/**
 * Limits how long the starts of due runs keep the event loop from other work. A handler that awaits something that is ready already, or
 * that computes before it awaits, frees its place in a microtask, which starts the next run; without a limit, all due runs start in one
 * turn of the event loop, and no verdict, claim or request proceeds meanwhile.
 */
export class Turn {
  /** Starts the runs that were left. */
  readonly again: () => void;
  /** When the first start of this turn began, by this process's monotonic clock; NaN if none has, or if no run waits any more. */
  #beganMono = Number.NaN;
  #armed = false;

  constructor(again: () => void) {
    this.again = again;
  }

  /** Returns whether another run may start in this turn. */
  lasts(mono: number): boolean {
    if (Number.isNaN(this.#beganMono)) this.#beganMono = mono;
    return mono - this.#beganMono < mostMs;
  }

  /** Called after starts. @param left true if due runs are left, because the turn is over or no place is free: the next turn starts more */
  ended(clock: Clock, left: boolean): void {
    if (this.#armed || Number.isNaN(this.#beganMono)) return;
    if (!left) {
      this.#beganMono = Number.NaN;
      return;
    }
    this.#armed = true;
    clock.after(turnMs, () => {
      this.#armed = false;
      this.#beganMono = Number.NaN;
      this.again();
    });
  }
}
