import type { Why } from "../base/change.ts";
import type { Duration } from "../base/duration.ts";
import type { Json } from "../base/json.ts";
import type { Continuation } from "../run/flow.ts";
import type { RetryIn, Snooze } from "../run/handling/postponed.ts";
import type { Enqueued, LogLine, RunRecord } from "../run/run-record.ts";
import type { RunEvent } from "./acts/run-events.ts";

export interface ResultOptions {
  /** The longest time to wait. After it the call rejects with RESULT_TIMEOUT, while the run continues. Default: no limit. */
  timeout?: Duration;
  /** If this signal aborts, the call rejects at once with the signal's reason, while the run continues. */
  signal?: AbortSignal;
}

/** The type `void`, which is the return type of a function without a result. */
type Nothing = ReturnType<() => void>;

/**
 * The type of a value after a round trip through JSON: a Date becomes a string, parts that JSON omits are missing, and undefined becomes
 * null.
 */
export type JsonOf<Value> = unknown extends Value
  ? Value
  : Value extends string | number | boolean | null
    ? Value
    : Value extends { toJSON(): infer Json }
      ? JsonOf<Json>
      : Value extends undefined | Nothing | symbol | ((...given: never[]) => unknown)
        ? null
        : Value extends readonly (infer Item)[]
          ? JsonOf<Item>[]
          : {
              [Name in keyof Value as Value[Name] extends symbol | ((...given: never[]) => unknown) ? never : Name]:
                | JsonOf<Exclude<Value[Name], undefined>>
                | Extract<Value[Name], undefined>;
            };

/** The type of `result()` for a handler that returns `Returned`. */
export type ResultOf<Returned> = unknown extends Returned
  ? unknown
  : JsonOf<Exclude<Returned, Continuation | RetryIn | Snooze>>;

/** A handle for one run, which any process of the cluster may execute. */
export interface RunHandle<Result = unknown> {
  readonly runId: number;
  /**
   * False if no run was created, because an unfinished run has the same key, or because this enqueue and the enqueue of an
   * earlier run with this key have `uniqueFor`, and the earlier time has not passed. The handle then belongs to that run.
   */
  readonly created: boolean;
  /** With `ifKeyTaken: "replace"`: the id of the waiting run that this run replaced; otherwise undefined. */
  readonly replaced: number | undefined;
  /**
   * With `ifKeyTaken: "again"`: true if the run with the key has already started. This handle then belongs to that run, and one
   * more run, with the payload and options of this enqueue, follows its end. Undefined: this handle belongs to the run that the
   * enqueue created or found.
   */
  readonly again: boolean | undefined;
  /**
   * Resolves with the handler's result, as JSON, once the run has succeeded.
   * @throws RUN_FAILED with the run's error as `cause`, RUN_CANCELLED, RUN_SKIPPED, RESULT_TIMEOUT, RESULT_UNKEPT if the task
   * stores no results, CODEC_FAILED or PAYLOAD_STORE_FAILED if this process cannot decode the result, RUN_UNKNOWN if the run's
   * history has been deleted, STOPPED
   */
  result(options?: ResultOptions): Promise<Result>;
  /** Returns the run's current record. @throws RUN_UNKNOWN */
  status(): Promise<RunRecord>;
  /**
   * @returns "cancelled" if the run will not start; "stopping" if it has started and was asked to stop
   * @throws RUN_STATE if the run has ended
   */
  cancel(reason?: string): Promise<"cancelled" | "stopping">;
  /** Yields the run's events until its end; see `tower.runs.events`. */
  events(options?: { signal?: AbortSignal }): AsyncGenerator<RunEvent>;
  /** Returns the run's log lines up to now, oldest first. */
  logs(options?: { limit?: number }): Promise<LogLine[]>;
}

/** The methods of `Runs` that a handle uses. */
export interface HandledRuns {
  result(runId: number, options?: ResultOptions): Promise<Json>;
  get(runId: number): Promise<RunRecord>;
  cancel(runId: number, why?: Why): Promise<"cancelled" | "stopping">;
  events(runId: number, options?: { signal?: AbortSignal }): AsyncGenerator<RunEvent>;
  logs(runId: number, options?: { limit?: number }): Promise<LogLine[]>;
}

/**
 * The handle of an enqueued run. Methods are on the class and fields are few, because a process may create very many handles per second.
 */
export class EnqueuedRun implements RunHandle<Json> {
  readonly runId: number;
  readonly created: boolean;
  readonly replaced: number | undefined;
  readonly again: boolean | undefined;
  readonly #runs: HandledRuns;

  constructor({ runId, created, replaced, again }: Enqueued, runs: HandledRuns) {
    this.runId = runId;
    this.created = created;
    this.replaced = replaced;
    this.again = again;
    this.#runs = runs;
  }

  result(options?: ResultOptions): Promise<Json> {
    return this.#runs.result(this.runId, options);
  }

  status(): Promise<RunRecord> {
    return this.#runs.get(this.runId);
  }

  cancel(reason?: string): Promise<"cancelled" | "stopping"> {
    return this.#runs.cancel(this.runId, reason === undefined ? {} : { reason });
  }

  events(options?: { signal?: AbortSignal }): AsyncGenerator<RunEvent> {
    return this.#runs.events(this.runId, options);
  }

  logs(options?: { limit?: number }): Promise<LogLine[]> {
    return this.#runs.logs(this.runId, options);
  }
}
