import type { Handler, Run } from "../handler.ts";

/** Calls the handler, and tells once how that ended; a throw counts before its first await as after it. */
export function call(
  handler: Handler,
  run: Run,
  payload: unknown,
  returned: (value: unknown) => void,
  threw: (error: unknown) => void,
): void {
  let outcome: unknown;
  let waits: boolean;
  try {
    outcome = handler(run, payload);
    // To look at it may throw too.
    waits = typeof (outcome as PromiseLike<unknown> | null | undefined)?.then === "function";
  } catch (error) {
    threw(error);
    return;
  }
  // What is there already waits for no turn of the event loop.
  if (waits) Promise.resolve(outcome).then(returned, threw);
  else returned(outcome);
}
