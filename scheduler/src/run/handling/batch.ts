import type { Duration } from "../../base/duration.ts";
import type { Run } from "../handler.ts";

/** `batch` of a task's options in code: its handler takes several runs at once. */
export interface BatchOptions {
  /** The most runs of one call: 1 to 10,000. */
  size: number;
  /** How long the first run waits for more runs; default "100ms", at most a minute. */
  wait?: Duration;
}

/** One run of a batch. It can be ended alone, without effect on the other runs. */
export interface BatchRun<Payload = unknown, Result = unknown> extends Run {
  readonly payload: Payload;
  /** Ends this run now, as if a handler of its own had returned this value. The first call of `succeed` or `fail` for a run counts. */
  succeed(result?: Result): void;
  /** Ends this run's attempt now, as if a handler of its own had thrown this error. */
  fail(error: unknown): void;
}

/**
 * A return ends all runs that have not been ended singly, as successes with this value; a throw fails the attempt of each of them. Each run
 * has its own `signal`.
 */
export type BatchHandler<Payload = unknown, Result = unknown> = (
  runs: BatchRun<Payload, Result>[],
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler that ends its runs singly returns nothing
) => Result | void | Promise<Result | void>;
