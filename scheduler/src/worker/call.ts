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
  try {
    outcome = handler(run, payload);
  } catch (error) {
    threw(error);
    return;
  }
  // What is there already waits for no turn of the event loop.
  if (typeof (outcome as PromiseLike<unknown> | null | undefined)?.then !== "function") returned(outcome);
  else Promise.resolve(outcome).then(returned, threw);
}
