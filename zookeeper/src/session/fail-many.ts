import type { ZooKeeperError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import type { Call } from "../requests/call.ts";

/**
 * Rejects calls in slices of `limits.sliceMs`: the first slice at once, and one in each later turn of the event loop. Rejecting 200,000
 * calls at once would block the event loop. The errors have no stack trace, because it would contain no line of the caller.
 */
export function failMany(
  calls: readonly Call[],
  errorOf: (call: Call, index: number) => ZooKeeperError,
  from = 0,
): void {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const untilMs = performance.now() + limits.sliceMs;
  let next = from;
  while (next < calls.length && performance.now() < untilMs) {
    const call = calls[next] as Call;
    if (!call.settled) call.fail(errorOf(call, next));
    next += 1;
  }
  Error.stackTraceLimit = stackTraceLimit;
  if (next < calls.length) setImmediate(() => failMany(calls, errorOf, next));
}
