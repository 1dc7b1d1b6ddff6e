import { type Clock, pause } from "./clock.ts";
import { isCarillonError, isStoreAway } from "./errors.ts";

/** `untilAnswered` bound to a process's clock, signal and `failFast`. */
export type UntilAnswered = <T>(ask: () => Promise<T>) => Promise<T>;

const retryMs = 250;

/**
 * Repeats a request to the store during a start until the store answers: one lost reply must not end a start that is meant to wait for the
 * store. Only for repeatable requests.
 * @throws the last error with `failFast`, or when the signal aborts; and every error other than an unreachable store
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
