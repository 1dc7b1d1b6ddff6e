import { type Clock, pause, settlesWithin } from "./clock.ts";
import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";

/** A stop takes this long at most beyond the time that handlers have to end. */
export const closingMs = 500;
/** No step has longer than this, however long handlers have: a service that has not answered by then is unreachable. */
const stepMostMs = 5_000;

export interface EndingOptions {
  clock: Clock;
  log: Log;
  /** How long running handlers have to end. */
  drainMs: number;
}

/**
 * The one deadline of a stop. Guarantees that a stop is over within `drainMs` + `closingMs`, whatever hangs. Each step gets a part of the
 * time left. When a step's time is over, the stop goes on without it and logs its name once. Such a step may still end later: the store,
 * which is closed last, refuses its late requests, and what it held ends with its session's timeout.
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

  /** The time left for running handlers. */
  get drainMs(): number {
    return Math.max(0, this.#drainedMono - this.#clock.monotonic());
  }

  get leftMs(): number {
    return Math.max(0, this.#drainedMono + closingMs - this.#clock.monotonic());
  }

  /**
   * The time limit for work that has the whole `drainMs`, and for what follows from its end: half of `closingMs` is left for the steps
   * after it.
   */
  get workMs(): number {
    return Math.max(0, this.leftMs - closingMs / 2);
  }

  /**
   * Resolves when the step has ended, or its time is over; a step that fails does not prevent the next ones.
   * @param work receives a signal that aborts when the stop goes on without it
   * @param withinMs default: half of the time left, so that the steps after one that hangs have the other half
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
    // After a process was suspended, its timers are due before it has read what arrived meanwhile, so it reads first.
    await pause(this.#clock, 0);
    if (await settlesWithin(this.#clock, 0, ended)) return;
    abandoned.abort();
    const afterMs = Math.round(this.#clock.monotonic() - beganMono);
    this.#log.warn({ step: name, afterMs }, "a step of the stop did not end in time; the stop goes on without it");
  }

  /** @throws what the first step that failed in time has failed with */
  done(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
