import { type ErrorCode, isCarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";

const passing: ReadonlySet<ErrorCode> = new Set(["STORE_CONFLICT", "FENCE_STALE"]);

/**
 * Runs a service's one operation, never twice at once: calls during a run make it run once more afterwards. A store that is away is not the
 * service's concern (the store client logs that once); the next pulse after its return calls again.
 */
export class SingleFlight {
  readonly #name: string;
  readonly #work: () => Promise<void>;
  readonly #log: Log;
  #flight: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(name: string, log: Log, work: () => Promise<void>) {
    this.#name = name;
    this.#log = log;
    this.#work = work;
  }

  /** Resolves when a run that began after this call, or at it, has ended. */
  run(): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    if (this.#flight) {
      this.#again = true;
      return this.#flight;
    }
    this.#flight = this.#fly();
    return this.#flight;
  }

  /** No run begins after this; resolves when the last has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#again = false;
    await this.#flight;
  }

  async #fly(): Promise<void> {
    do {
      this.#again = false;
      try {
        await this.#work();
      } catch (error) {
        // After a stop that did not wait for the service, it finds the store closed.
        const expected = this.#stopped || isStoreAway(error) || (isCarillonError(error) && passing.has(error.code));
        const fields = { service: this.#name, error: messageOf(error) };
        if (expected) this.#log.debug(fields, "a service was interrupted; it goes on with the next pulse");
        else this.#log.error(fields, "a service failed; it tries again with the next pulse");
      }
    } while (this.#again && !this.#stopped);
    // Cleared here and not when the promise resolves: else a call in between would get a run that began before it.
    this.#flight = undefined;
  }
}
