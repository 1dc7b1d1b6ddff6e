import type { Duration } from "../base/duration.ts";
import type { Json } from "../base/json.ts";
import type { Continuation, RunInput } from "./flow.ts";
import type { RetryIn, Snooze } from "./handling/postponed.ts";
import type { Transaction } from "./transaction.ts";

/** The run that a handler executes, as the handler sees it. */
export interface Run {
  readonly id: number;
  readonly task: string;
  /** The name of the task's schedule that this run's slot belongs to. null: a slot of the task's own schedule, or an enqueued run. */
  readonly schedule: string | null;
  /** The slot's nominal time; null for an enqueued run. */
  readonly slot: Date | null;
  readonly due: Date;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  readonly key: string | null;
  /** The labels given when the run was enqueued, and its task's `runLabels`. */
  readonly labels: Readonly<Record<string, string>>;
  /** For a task with `route: "broadcast"` or `{ shards }`: which part this run is, from 0; else null. */
  readonly shard: { readonly index: number; readonly total: number } | null;
  /**
   * Higher than the fence of each earlier attempt of this run. Pass it to the system that you write to, and let that system reject writes
   * of the same run with a lower fence. Claims are made ahead, so runs of a task may start in another order than their fences: a fence
   * orders different runs of a task only if they cannot overlap.
   */
  readonly fence: number;
  /** Aborts on timeout, cancel, and when the claim can no longer be trusted; its reason is a CarillonError. */
  readonly signal: AbortSignal;
  readonly log: RunLog;
  /**
   * Returns a secret's current value, or its value in one of the kept versions (the present one and the one before). From then on the value
   * is removed from everything that this process's runs log, return, show and throw.
   * @throws SECRET_UNKNOWN, SECRET_FORBIDDEN, SECRET_KEY_MISSING, FENCE_STALE
   */
  secret(name: string, options?: { version?: number }): Promise<string>;
  /** Shows how far the run has come: any small JSON value. */
  progress(value: unknown): void;
  /**
   * Completes the run inside your own PostgreSQL transaction on the store's database: your writes and the completion happen both or not at
   * all. Return from the handler soon after you commit.
   * @param transaction a pg client on which you began one, or a transaction of Drizzle, Kysely, Knex, TypeORM, MikroORM, Prisma or
   * postgres.js
   * @throws FENCE_STALE when the claim is no longer this run's: roll back; OPTION_INVALID for a pool, which has no transaction
   */
  complete(transaction: Transaction, result?: unknown): Promise<void>;
  /** The value that `saveState` stored, in this attempt or an earlier one; null: none. Deleted when the run has ended. */
  readonly state: Json;
  /**
   * Stores the run's state: any JSON up to 256 KiB. Resolves once a later attempt would find it.
   * @throws FENCE_STALE when the claim is no longer this run's, PAYLOAD_NOT_JSON, PAYLOAD_TOO_LARGE
   */
  saveState(value: unknown): Promise<void>;
  /**
   * Makes a run of a task as this run's child, at once. A child's key is unique among its parent's children of that task, so another
   * attempt of the parent that spawns the same key gets the same child. Without a key, children are numbered in the order of calls, so
   * every attempt must spawn them in the same order.
   * @throws TASK_UNKNOWN, FENCE_STALE, OPTION_INVALID (over 10,000 children), PAYLOAD_…; in a remote worker KEY_FORBIDDEN for a task of a
   * group that its key does not allow
   */
  spawn(task: string, payload?: unknown, options?: { key?: string }): Promise<{ runId: number; created: boolean }>;
  /**
   * `return run.fanOut(children, { join })`: spawns these children and ends this run. Once every child has ended, with any outcome and
   * including children spawned before, one run of the task `join` is made, which reads their results with `inputs`. No slot of concurrency
   * is held meanwhile.
   */
  fanOut(children: ChildSpec[], options: { join: string; payload?: unknown }): Promise<Continuation>;
  /** `return run.continueAs(payload)`: ends this run and begins the next run of the chain, in one write. */
  continueAs(payload?: unknown, options?: { state?: unknown }): Continuation;
  /**
   * `throw run.retryIn("10m", { cause: error })`: the attempt fails, with the cause as its error, and the next try comes after this time
   * instead of the pause of the task's `retry`. The attempt counts as a try: if it was the last one, the run has failed.
   * @throws DURATION_INVALID, OPTION_INVALID (over 366 days)
   */
  retryIn(after: Duration, options?: { cause?: unknown }): RetryIn;
  /**
   * `return run.snooze("10m")`: postpones the run by this time. The attempt has not failed, and does not count as a try; the run keeps its
   * key, its state and its slot of concurrency. A run can be snoozed 1,000 times; after that the attempt fails.
   * @throws DURATION_INVALID, OPTION_INVALID (over 366 days)
   */
  snooze(by: Duration): Snooze;
  /**
   * Returns the runs that this run comes from: the children that it joins, the runs that it follows, or the run that it continues.
   * @throws FENCE_STALE
   */
  inputs(): Promise<RunInput[]>;
}

export interface ChildSpec {
  task: string;
  payload?: unknown;
  key?: string;
}

/**
 * Writes to the run's log. Never throws. Fields are stored as JSON of up to 256 KiB: Errors by message, code and stack; a value that cannot
 * be stored is replaced by the reason.
 */
export interface RunLog {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** The return value is stored as the run's result if it can be written as JSON; a throw fails the attempt. */
export type Handler<Payload = unknown, Result = unknown> = (run: Run, payload: Payload) => Result | Promise<Result>;

/** Reports a start or an end of a run in this process, for a live view. Times are by the store's clock. */
export interface RunNotice {
  kind: "started" | "ended" | "retry" | "snoozed";
  runId: number;
  task: string;
  attempt: number;
  slotMs: number | null;
  dueMs: number;
  /** Since when only a worker was missing. Later than `dueMs` if the run first waited for a limit, a rate, a predecessor or a pause. */
  readyMs: number;
  startedMs: number;
  endedMs: number | null;
  outcome: "succeeded" | "failed" | "cancelled" | null;
  error: string | null;
}
