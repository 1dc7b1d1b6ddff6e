import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { HeldRun } from "./running/held-run.ts";

/** If the time between two checks is at least this long, in ms, the event loop counts as blocked. */
const blockedMs = 1_000;
/** The most running runs that the warning names; there may be thousands. */
const mostNamed = 20;

/**
 * Logs that the event loop was blocked, because a handler computed without a pause or the process was stopped. It logs once for this
 * process, and once in the log of each run that was executing, because one of these may be the cause.
 */
export class EventLoopLag {
  readonly #clock: Clock;
  readonly #log: Log;
  #lookedAt: number;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
    this.#lookedAt = clock.monotonic();
  }

  /** Checks whether the event loop was blocked since the last call. Callers should call this often. */
  look(held: Iterable<HeldRun>): void {
    const mono = this.#clock.monotonic();
    const stoodMs = Math.round(mono - this.#lookedAt);
    this.#lookedAt = mono;
    if (stoodMs < blockedMs || this.#clock.leaps) return;
    // This includes a handler that blocked the loop until its end, because its run is held until the store has answered the verdict.
    const running = [...held].filter(({ startedMs }) => startedMs !== null);
    this.#log.warn(
      { ms: stoodMs, underWay: running.length, runs: running.slice(0, mostNamed).map(({ id }) => id) },
      "this process's event loop stood still: a handler blocked it, or the process was stopped",
    );
    for (const run of running) run.log.warn(`the worker's event loop stood still for ${stoodMs} ms while this ran`);
  }
}
