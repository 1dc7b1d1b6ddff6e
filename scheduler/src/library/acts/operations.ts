import { randomUUID } from "node:crypto";
import type { Why } from "../../base/change.ts";
import { pause } from "../../base/clock.ts";
import { type Duration, parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import { checkNames } from "../../base/nearest.ts";
import type { BackfillRange, OperationFilter, OperationKind, OperationRecord } from "../../run/operations.ts";
import type { ResultOptions } from "../run-handle.ts";
import { timeOf } from "../runs.ts";
import type { Acting } from "./acting.ts";
import { type PauseOptions, pauseChange } from "./pause.ts";

/** Selects the tasks or runs that an operation acts on. An item must match all given fields. */
export interface OperationTarget extends Omit<OperationFilter, "sinceMs" | "untilMs"> {
  /** Only live runs that are due at or after this time, and ended runs that ended at or after it. */
  since?: Date;
  /** Only live runs that are due before this time, and ended runs that ended before it. */
  until?: Date;
}

export interface BeginOperation extends Why {
  /** For a pause: the time at which it ends automatically. By default, it ends only when the tasks are resumed. */
  pauseUntil?: PauseOptions["until"];
  /** The time range of a backfill; not permitted for other kinds of operation. */
  range?: BackfillRange;
  /** Makes the call idempotent: two calls with the same token begin only one operation. Default: a random token. */
  token?: string;
}

const lookMs = 100;

/**
 * Bulk operations on all tasks, runs or dead letters that match a filter. Scheduler processes execute the operations in steps. A caller
 * that waits for an operation executes some of the steps itself, so that the operation completes even if no scheduler process runs.
 */
export class Operations {
  readonly #options: Acting;

  constructor(options: Acting) {
    this.#options = options;
  }

  /** Begins an operation. The filter `{ all: true }` selects everything. @throws FILTER_EMPTY, OPTION_INVALID, TASK_UNKNOWN, STORE_… */
  async begin(kind: OperationKind, target: OperationTarget, options: BeginOperation = {}): Promise<Operation> {
    checkNames("an operation", options, ["pauseUntil", "range", "token", "author", "reason"]);
    const { pauseUntil, range, token = randomUUID(), ...why } = options;
    const { since, until, ...filter } = target;
    const { author, reason, nowMs, untilMs } = pauseChange(this.#options.change(why), pauseUntil);
    const { store } = await this.#options.open();
    const operationId = await store.operations.begin(
      {
        kind,
        filter: {
          ...filter,
          ...(since === undefined ? {} : { sinceMs: timeOf("since", since) }),
          ...(until === undefined ? {} : { untilMs: timeOf("until", until) }),
        },
        author,
        reason,
        ...(range ? { range } : {}),
        ...(untilMs == null ? {} : { pauseUntilMs: untilMs }),
      },
      token,
      nowMs,
    );
    return new Operation(operationId, this.#options);
  }

  /**
   * Returns a handle for an operation that any process may have begun. Its methods throw OPERATION_UNKNOWN if no operation has this
   * id.
   */
  get(operationId: number): Operation {
    return new Operation(operationId, this.#options);
  }

  /** Returns the newest operations, newest first; 50 by default. */
  async list({ limit = 50 }: { limit?: number } = {}): Promise<OperationRecord[]> {
    const { store } = await this.#options.open();
    return store.operations.list(limit);
  }
}

export class Operation {
  readonly operationId: number;
  readonly #options: Acting;

  /** @internal Only `Operations` creates instances. */
  constructor(operationId: number, options: Acting) {
    this.operationId = operationId;
    this.#options = options;
  }

  /** @throws OPERATION_UNKNOWN */
  async status(): Promise<OperationRecord> {
    const { store } = await this.#options.open();
    return store.operations.find(this.operationId);
  }

  /**
   * Waits until the operation is done, stopped or failed, and meanwhile executes some of its steps.
   * @returns the operation's record with its final counts
   * @throws OPERATION_UNKNOWN; RESULT_TIMEOUT (the operation continues); the signal's reason
   */
  async result({ timeout, signal }: ResultOptions = {}): Promise<OperationRecord> {
    const { clock, change } = this.#options;
    const { store } = await this.#options.open();
    const untilMono = timeout === undefined ? Infinity : clock.monotonic() + parseDuration(timeout, "timeout", 1);
    for (;;) {
      signal?.throwIfAborted();
      const { stepped } = await store.operations.step(change({}).nowMs, this.operationId);
      const record = await this.status();
      if (record.endedMs !== null) return record;
      if (clock.monotonic() >= untilMono) throw late(this.operationId, timeout as Duration);
      if (stepped === null) await pause(clock, Math.min(lookMs, untilMono - clock.monotonic()));
    }
  }

  /**
   * Stops the operation; if a batch of items is in progress, the operation stops after this batch. Completed items are not undone.
   * @throws OPERATION_UNKNOWN, OPERATION_STATE
   */
  async stop(why: Why = {}): Promise<OperationRecord["state"]> {
    const { store } = await this.#options.open();
    const { author, reason, nowMs } = this.#options.change(why);
    return store.operations.stop(this.operationId, nowMs, { author, reason });
  }
}

const late = (operationId: number, timeout: Duration) =>
  new CarillonError("RESULT_TIMEOUT", `operation ${operationId} did not end within ${timeout}`, {
    hint: "It goes on.",
  });
