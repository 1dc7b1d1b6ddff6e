import { type Clock, pause, settlesWithin } from "./clock.ts";
import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";

/** A stop takes at most this many ms in addition to the time that handlers have to end. */
export const closingMs = 500;
/** No step gets more than this many ms by default: a service that has not answered by then counts as unreachable. */
const stepMostMs = 5_000;

export interface EndingOptions {
  clock: Clock;
  log: Log;
  /** The time in ms that running handlers have to end. */
  drainMs: number;
}

/**
 * The single deadline of a stop: the stop is over within `drainMs` + `closingMs`, even if a step hangs. Each step gets a part of the
 * remaining time. When a step's time is over, the stop continues without the step and logs its name once. The step may still end later, but
 * the store, which is closed last, refuses its late requests, and its claims and locks end with the session's timeout.
 */
export class Ending {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #drainedMono: number;
  #failure: { error: unknown } | undefined;

  constructor({ clock, log, drainMs }: EndingOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#drainedMono = clock.monotonic() + drainMs;
  }

  /** The time left for running handlers, in ms. */
  get drainMs(): number {
    return Math.max(0, this.#drainedMono - this.#clock.monotonic());
  }

  get leftMs(): number {
    return Math.max(0, this.#drainedMono + closingMs - this.#clock.monotonic());
  }

  /**
   * The time limit in ms for a step that waits for running handlers: the remaining time without half of `closingMs`, which is
   * left for the steps after it.
   */
  get workMs(): number {
    return Math.max(0, this.leftMs - closingMs / 2);
  }

  /**
   * Runs one step. Resolves when the step has ended or its time is over. A failed step does not prevent the next steps; `done`
   * throws the error of the first failed step.
   * @param work receives a signal that aborts when the stop continues without the step
   * @param withinMs default: half of the remaining time, so that the other half is left for later steps, but at most `stepMostMs`
   */
  async step(
    name: string,
    work: (abandoned: AbortSignal) => Promise<unknown> | undefined,
    withinMs = Math.min(this.leftMs / 2, stepMostMs),
  ): Promise<void> {
    const beganMono = this.#clock.monotonic();
    const abandoned = new AbortController();
    const ended = (async () => work(abandoned.signal))().catch((error: unknown) => {
      const fields = { step: name, error: messageOf(error) };
      if (abandoned.signal.aborted) return this.#log.debug(fields, "an abandoned step of the stop has failed");
      this.#failure ??= { error };
      this.#log.error(fields, "a step of the stop has failed");
    });
    if (await settlesWithin(this.#clock, withinMs, ended)) return;
    // If the whole process was suspended, this timer fires before arrived input is read. So let the event loop read it before giving
    // up.
    await pause(this.#clock, 0);
    if (await settlesWithin(this.#clock, 0, ended)) return;
    abandoned.abort();
    const afterMs = Math.round(this.#clock.monotonic() - beganMono);
    this.#log.warn({ step: name, afterMs }, "a step of the stop did not end in time; the stop goes on without it");
  }

  /** @throws the error of the first step that failed within its time */
  done(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
