import { type Clock, pause, settlesWithin } from "./clock.ts";
import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";

/** A stop takes at most this long beyond the time that handlers have to end. */
export const closingMs = 500;
/** No step gets more time than this, however long handlers may take: a service that has not answered by then is unreachable. */
const stepMostMs = 5_000;

export interface EndingOptions {
  clock: Clock;
  log: Log;
  /** How long running handlers have to end, in milliseconds. */
  drainMs: number;
}

/**
 * The single deadline of a stop. Guarantees that a stop is over within `drainMs` + `closingMs`, whatever hangs. Each step gets a part of
 * the remaining time. When a step's time is over, the stop continues without it and logs its name once. Such a step may still end later:
 * the store, which is closed last, refuses its late requests, and everything that it held ends with its session's timeout.
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

  /** The time left for running handlers, in milliseconds. */
  get drainMs(): number {
    return Math.max(0, this.#drainedMono - this.#clock.monotonic());
  }

  get leftMs(): number {
    return Math.max(0, this.#drainedMono + closingMs - this.#clock.monotonic());
  }

  /**
   * The time limit for work that takes the whole `drainMs`, and for what follows directly, in milliseconds: half of `closingMs` is left for
   * the steps after it.
   */
  get workMs(): number {
    return Math.max(0, this.leftMs - closingMs / 2);
  }

  /**
   * Resolves when the step has ended, or its time is over; a step that fails does not prevent the next ones.
   * @param work receives a signal that aborts when the stop continues without it
   * @param withinMs default: half of the remaining time, so that the steps after a hanging one have the other half
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
    // After a suspension of the process its timers are due before it has read what arrived meanwhile, so it reads first.
    await pause(this.#clock, 0);
    if (await settlesWithin(this.#clock, 0, ended)) return;
    abandoned.abort();
    const afterMs = Math.round(this.#clock.monotonic() - beganMono);
    this.#log.warn({ step: name, afterMs }, "a step of the stop did not end in time; the stop goes on without it");
  }

  /** @throws the error of the first step that failed in time */
  done(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
