import type { Why } from "../base/change.ts";
import type { Duration } from "../base/duration.ts";
import type { Json } from "../base/json.ts";
import type { Continuation } from "../run/flow.ts";
import type { RetryIn, Snooze } from "../run/handling/postponed.ts";
import type { Enqueued, LogLine, RunRecord } from "../run/run-record.ts";
import type { RunEvent } from "./acts/run-events.ts";

export interface ResultOptions {
  /** The longest wait; after it the call rejects with RESULT_TIMEOUT, while the run continues. Default: no limit. */
  timeout?: Duration;
  /** If it aborts, the call rejects at once with the signal's reason, while the run continues. */
  signal?: AbortSignal;
}

/** The return type of a function without a result. */
type Nothing = ReturnType<() => void>;

/** A value after storage as JSON: a Date becomes a text, parts that JSON omits are missing, and undefined becomes null. */
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

/** A run, whichever process executes it. */
export interface RunHandle<Result = unknown> {
  readonly runId: number;
  /** False: an unfinished run already had the key, or a run counts as this one (`uniqueFor`); this handle is then that run's. */
  readonly created: boolean;
  /** With `ifKeyTaken: "replace"`: the number of the waiting run that this run replaced. */
  readonly replaced: number | undefined;
  /**
   * For `ifKeyTaken: "again"`. true: the run with the key has begun, and one more run, with the payload and options of this enqueue,
   * follows its end; this handle is that of the run under way. undefined: this handle is that of the run that this enqueue made or found.
   */
  readonly again: boolean | undefined;
  /**
   * The handler's result, as JSON, once the run has succeeded.
   * @throws RUN_FAILED with the error as `cause`, RUN_CANCELLED, RUN_SKIPPED, RESULT_TIMEOUT, RESULT_UNKEPT if the task keeps no results,
   * RUN_UNKNOWN after its retention, STOPPED
   */
  result(options?: ResultOptions): Promise<Result>;
  /** The run as it is now. @throws RUN_UNKNOWN */
  status(): Promise<RunRecord>;
  /**
   * @returns "cancelled" when the run will not start; "stopping" when it runs and was asked to stop @throws RUN_STATE when it has ended
   */
  cancel(reason?: string): Promise<"cancelled" | "stopping">;
  /** The events of the run until its end: see `tower.runs.events`. */
  events(options?: { signal?: AbortSignal }): AsyncGenerator<RunEvent>;
  /** The run's log so far, the oldest line first. */
  logs(options?: { limit?: number }): Promise<LogLine[]>;
}

/** The calls that a handle is built on. */
export interface HandledRuns {
  result(runId: number, options?: ResultOptions): Promise<Json>;
  get(runId: number): Promise<RunRecord>;
  cancel(runId: number, why?: Why): Promise<"cancelled" | "stopping">;
  events(runId: number, options?: { signal?: AbortSignal }): AsyncGenerator<RunEvent>;
  logs(runId: number, options?: { limit?: number }): Promise<LogLine[]>;
}

/** One object per enqueue, kept small because a process may enqueue fast. */
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
