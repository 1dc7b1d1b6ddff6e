import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { HeldRun } from "./running/held-run.ts";

/** A timer that is this late was kept waiting by something; half a heartbeat's spare time is gone then. */
const blockedMs = 1_000;
/** Of those that were under way, so many are named: there may be thousands. */
const mostNamed = 20;

/**
 * Tells of an event loop that stood still, by a handler that computes without a pause or by a process that was stopped:
 * once for this process, and in the log of each run that was under way, for one of them may be the cause.
 */
export class Blockage {
  readonly #clock: Clock;
  readonly #log: Log;
  #lookedAt: number;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
    this.#lookedAt = clock.monotonic();
  }

  /** To be called often. */
  look(held: Iterable<HeldRun>): void {
    const mono = this.#clock.monotonic();
    const stoodMs = Math.round(mono - this.#lookedAt);
    this.#lookedAt = mono;
    if (stoodMs < blockedMs || this.#clock.leaps) return;
    // One that blocked it from its first step to its last has ended by now, and waits for the store's answer.
    const running = [...held].filter(({ startedMs }) => startedMs !== null);
    this.#log.warn(
      { ms: stoodMs, underWay: running.length, runs: running.slice(0, mostNamed).map(({ id }) => id) },
      "this process's event loop stood still: a handler blocked it, or the process was stopped",
    );
    for (const run of running) run.log.warn(`the worker's event loop stood still for ${stoodMs} ms while this ran`);
  }
}
