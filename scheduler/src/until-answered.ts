import { type Clock, pause } from "./clock.ts";
import { isCarillonError } from "./errors.ts";

const retryMs = 250;

/**
 * Repeats what a process asks of the store while it starts, until the store answers: one lost reply must not end a start
 * that is to wait for the store. Only for what may be repeated.
 * @throws the last error with `failFast`, or when the signal aborted; and every other one
 */
export async function untilAnswered<T>(
  ask: () => Promise<T>,
  { clock, failFast, signal }: { clock: Clock; failFast: boolean; signal: AbortSignal },
): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const passes = isCarillonError(error, "STORE_UNREACHABLE") || isCarillonError(error, "STORE_CONFLICT");
      if (!passes || failFast || signal.aborted) throw error;
      await pause(clock, retryMs, signal);
    }
  }
}
