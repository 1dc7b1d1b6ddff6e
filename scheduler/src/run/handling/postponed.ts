import { type Duration, formatDuration, parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";

/** A return value of a handler: its run is postponed, and the attempt does not count for `retry`. `run.snooze` creates it. */
export class Snooze {
  /** A private field, so that the compiler does not accept other objects with the same fields as this class. */
  readonly #forMs: number;

  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  get forMs(): number {
    return this.#forMs;
  }
}

/** Thrown by a handler: the attempt has failed, and the next attempt starts after this time. `run.retryIn` creates it. */
export class RetryIn extends Error {
  override readonly name = "RetryIn";
  readonly retryInMs: number;

  constructor(retryInMs: number, options?: { cause?: unknown }) {
    super(`the handler asked for another try in ${formatDuration(retryInMs)}`, options);
    this.retryInMs = retryInMs;
  }
}

/** Tests the fields instead of the class, because an error from an isolated handler is a copy without the class. */
export function isRetryIn(thrown: unknown): thrown is RetryIn {
  return thrown instanceof Error && thrown.name === "RetryIn" && typeof (thrown as RetryIn).retryInMs === "number";
}

export const isPostponed = (value: unknown): value is RetryIn | Snooze => value instanceof Snooze || isRetryIn(value);

export const snooze = (given: Duration): Snooze => new Snooze(within(given, "snooze"));

export const retryIn = (given: Duration, options?: { cause?: unknown }): RetryIn =>
  new RetryIn(within(given, "retryIn"), options);

/** Converts a duration to ms. @throws DURATION_INVALID; OPTION_INVALID if it is longer than 366 days */
function within(given: Duration, what: string): number {
  const ms = parseDuration(given, what, 0);
  if (ms <= limits.postponedMs) return ms;
  throw new CarillonError("OPTION_INVALID", `${what}: a run can be put off by at most 366 days`);
}

/** Creates the error of an attempt whose run has been snoozed too often. */
export const snoozedTooOften = () =>
  new CarillonError("OPTION_INVALID", `the run was snoozed ${limits.snoozes} times, and cannot be once more`, {
    hint: "Go on as another run: run.continueAs.",
  });
