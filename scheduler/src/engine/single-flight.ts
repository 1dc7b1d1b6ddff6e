import { type ErrorCode, isCarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";

const passing: ReadonlySet<ErrorCode> = new Set(["STORE_CONFLICT", "FENCE_STALE"]);

/**
 * Runs the operation of a service, never twice at the same time: a call while the operation runs makes it run once more
 * afterwards. Errors of an unreachable store, which the store client logs, and the errors in `passing` are not logged as errors;
 * the next heartbeat calls again.
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

  /** Resolves when a run of the operation that began at or after this call has ended; at once if the service was stopped. */
  run(): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    if (this.#flight) {
      this.#again = true;
      return this.#flight;
    }
    this.#flight = this.#fly();
    return this.#flight;
  }

  /** True while the operation runs. */
  get flies(): boolean {
    return this.#flight !== undefined;
  }

  /** Prevents further runs of the operation; resolves when the current one has ended. */
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
        // After `stop`, the process may close the store while the operation still runs, so an error is then expected.
        const expected = this.#stopped || isStoreAway(error) || (isCarillonError(error) && passing.has(error.code));
        const fields = { service: this.#name, error: messageOf(error) };
        if (expected) this.#log.debug(fields, "a service was interrupted; it goes on with the next pulse");
        else this.#log.error(fields, "a service failed; it tries again with the next pulse");
      }
    } while (this.#again && !this.#stopped);
    // Set here and not in a `finally` of the promise: a call in between would otherwise get a run that began before the call.
    this.#flight = undefined;
  }
}
