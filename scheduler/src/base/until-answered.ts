import { type Clock, pause } from "./clock.ts";
import { isCarillonError, isStoreAway } from "./errors.ts";

/** `untilAnswered` with a process's own clock, signal and `failFast`. */
export type UntilAnswered = <T>(ask: () => Promise<T>) => Promise<T>;

const retryMs = 250;

/**
 * Repeats a start's request to the store until the store answers: one lost reply must not end a start that is meant to wait for the
 * store. Only for requests that may be repeated.
 * @throws the last error with `failFast`, or when the signal aborted; and every other error
 */
export async function untilAnswered<T>(
  ask: () => Promise<T>,
  { clock, failFast, signal }: { clock: Clock; failFast: boolean; signal: AbortSignal },
): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const passes = isStoreAway(error) || isCarillonError(error, "STORE_CONFLICT");
      if (!passes || failFast || signal.aborted) throw error;
      await pause(clock, retryMs, signal);
    }
  }
}
