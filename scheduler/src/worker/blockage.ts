import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { HeldRun } from "./running/held-run.ts";

/** A timer that fires this late shows that the event loop was blocked. By then half of a heartbeat's spare time is used up. */
const blockedMs = 1_000;
/** At most this many running runs are named in the warning; there may be thousands. */
const mostNamed = 20;

/**
 * Logs that the event loop stood still, because a handler computed without a pause or the process was stopped. It logs once for this
 * process, and once in the log of each run that was running, since one of them may be the cause.
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

  /** Checks for a blocked event loop; callers should call it often. */
  look(held: Iterable<HeldRun>): void {
    const mono = this.#clock.monotonic();
    const stoodMs = Math.round(mono - this.#lookedAt);
    this.#lookedAt = mono;
    if (stoodMs < blockedMs || this.#clock.leaps) return;
    // A handler that blocked the loop from its first step to its last has ended by now, and its verdict waits for the store's answer.
    const running = [...held].filter(({ startedMs }) => startedMs !== null);
    this.#log.warn(
      { ms: stoodMs, underWay: running.length, runs: running.slice(0, mostNamed).map(({ id }) => id) },
      "this process's event loop stood still: a handler blocked it, or the process was stopped",
    );
    for (const run of running) run.log.warn(`the worker's event loop stood still for ${stoodMs} ms while this ran`);
  }
}
