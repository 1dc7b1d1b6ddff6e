import type { Duration } from "../../base/duration.ts";
import type { Run } from "../handler.ts";

/** The option `batch` of a task in code, whose handler receives several runs at once. */
export interface BatchOptions {
  /** The maximum number of runs in one call, from 1 to 10,000. */
  size: number;
  /** The time that the first run waits for more runs; default "100ms", at most a minute. */
  wait?: Duration;
}

/** One run of a batch. The handler can end it before the other runs and with another outcome. */
export interface BatchRun<Payload = unknown, Result = unknown> extends Run {
  readonly payload: Payload;
  /**
   * Ends this run now with this result, as if a handler of its own had returned it. Only the first call of `succeed` or `fail` per run
   * counts.
   */
  succeed(result?: Result): void;
  /** Fails this run's attempt now, as if a handler of its own had thrown this error. */
  fail(error: unknown): void;
}

/**
 * A handler for several runs. When it returns, the runs that it has not ended by `succeed` or `fail` succeed with the returned
 * value; when it throws, the attempts of these runs fail. Each run has its own `signal`.
 */
export type BatchHandler<Payload = unknown, Result = unknown> = (
  runs: BatchRun<Payload, Result>[],
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler that ends its runs singly returns nothing
) => Result | void | Promise<Result | void>;
