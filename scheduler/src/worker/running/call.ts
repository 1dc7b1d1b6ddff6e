import type { Handler } from "../../run/handler.ts";
import { isPostponed } from "../../run/handling/postponed.ts";
import type { HeldRun } from "./held-run.ts";

type Returned = (run: HeldRun, value: unknown) => void;
type Threw = (run: HeldRun, error: unknown) => void;

/** Calls the handler and reports exactly once how it ended. A handler that throws synchronously counts the same as one that rejects. */
export function call(handler: Handler, run: HeldRun, returned: Returned, threw: Threw): void {
  let outcome: unknown;
  let waits: boolean;
  try {
    outcome = handler(run.handed, run.claim.payload);
    // Reading `then` may throw too.
    waits = typeof (outcome as PromiseLike<unknown> | null | undefined)?.then === "function";
  } catch (error) {
    threw(run, error);
    return;
  }
  // A result that is not a promise is reported in the same turn of the event loop and allocates no closures.
  if (waits) wait(outcome, run, returned, threw);
  else end(outcome, run, returned, threw);
}

/**
 * Reports the handler's result. A handler that returns a postponement (see `isPostponed`) has postponed its run, as if it had thrown the
 * postponement.
 */
function end(value: unknown, run: HeldRun, returned: Returned, threw: Threw): void {
  if (typeof value === "object" && isPostponed(value)) threw(run, value);
  else returned(run, value);
}

function wait(outcome: unknown, run: HeldRun, returned: Returned, threw: Threw): void {
  Promise.resolve(outcome).then(
    (value) => end(value, run, returned, threw),
    (error) => threw(run, error),
  );
}
