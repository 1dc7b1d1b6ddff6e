import { type Clock, pause } from "./clock.ts";
import { isCarillonError, isStoreAway } from "./errors.ts";

/** `untilAnswered` with its second argument bound. */
export type UntilAnswered = <T>(ask: () => Promise<T>) => Promise<T>;

const retryMs = 250;

/**
 * Repeats a request to the store during a start until the store answers, because the start waits for the store and must not
 * fail on one lost reply. Only for requests that are safe to repeat.
 * @throws at once an error other than an unreachable store or STORE_CONFLICT; any error with `failFast` or after the signal has
 * aborted
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
