import { type ErrorCode, isCarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";

const passing: ReadonlySet<ErrorCode> = new Set(["STORE_CONFLICT", "FENCE_STALE"]);

/**
 * A service's one verb, never twice at once: calls that come while it runs make it run once more afterwards. A store
 * that is away is not the service's business (the store says so once); the next pulse after its return calls again.
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

  /** No run begins any more; resolves when the last has ended. */
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
        // After a stop that did not wait for it, it finds the store closed.
        const expected = this.#stopped || isStoreAway(error) || (isCarillonError(error) && passing.has(error.code));
        const fields = { service: this.#name, error: messageOf(error) };
        if (expected) this.#log.debug(fields, "a service was interrupted; it goes on with the next pulse");
        else this.#log.error(fields, "a service failed; it tries again with the next pulse");
      }
    } while (this.#again && !this.#stopped);
    // Here, and not once its promise is seen to be kept: a call in between would be answered by a run that began before it.
    this.#flight = undefined;
  }
}
