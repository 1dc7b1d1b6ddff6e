import type { Duration } from "../base/duration.ts";
import type { Json } from "../base/json.ts";
import type { Continuation, RunInput } from "./flow.ts";
import type { RetryIn, Snooze } from "./handling/postponed.ts";
import type { Transaction } from "./transaction.ts";

/** The run, as its handler receives it. */
export interface Run {
  readonly id: number;
  readonly task: string;
  /** The name of the schedule that created this run's slot. null if the task's own schedule created it, or if the run was enqueued. */
  readonly schedule: string | null;
  /** The slot's nominal time; null for an enqueued run. */
  readonly slot: Date | null;
  readonly due: Date;
  /** This attempt's number, from 1. */
  readonly attempt: number;
  readonly key: string | null;
  /** The labels given at the enqueue together with the task's `runLabels`. */
  readonly labels: Readonly<Record<string, string>>;
  /** For a task with `route: "broadcast"` or `{ shards }`: the index of this run's part, from 0, and the number of parts; else null. */
  readonly shard: { readonly index: number; readonly total: number } | null;
  /**
   * A number higher than the fence of every earlier attempt of this run. Pass it to the system that the handler writes to, and let
   * that system reject writes of the same run with a lower fence. Different runs of a task may start in another order than that of
   * their fences, because runs are claimed before they are due. Fences therefore order different runs only if these runs cannot
   * overlap.
   */
  readonly fence: number;
  /**
   * Aborts when the run times out, is cancelled, may no longer own its claim, or has not ended before its stopping worker's
   * `drain` is over. Its reason is a CarillonError.
   */
  readonly signal: AbortSignal;
  readonly log: RunLog;
  /**
   * Returns a secret's current value, or the value of one of its two stored versions, the current and the previous one. From then
   * on, the value is redacted in everything that this process's runs log, return, report as progress or throw.
   * @throws SECRET_UNKNOWN, SECRET_FORBIDDEN, SECRET_KEY_MISSING, FENCE_STALE
   */
  secret(name: string, options?: { version?: number }): Promise<string>;
  /** Reports the run's progress as any small JSON value, which the console and the API show. */
  progress(value: unknown): void;
  /**
   * Completes the run inside the caller's own PostgreSQL transaction on the store's database, so that the caller's writes and the
   * completion are committed together or not at all. Return from the handler soon after the commit.
   * @param transaction a pg client that has begun one, or a transaction of Drizzle, Kysely, Knex, TypeORM, MikroORM, Prisma or postgres.js
   * @throws FENCE_STALE if the run's claim is not valid any more (roll back then); OPTION_INVALID for a pool, which has no transaction
   */
  complete(transaction: Transaction, result?: unknown): Promise<void>;
  /** The value that `saveState` stored in this attempt or an earlier one; null if none. It is deleted when the run has ended. */
  readonly state: Json;
  /**
   * Stores the run's state: any JSON up to 256 KiB. Resolves once it is committed, so that a later attempt finds it.
   * @throws FENCE_STALE if the run's claim is not valid any more, PAYLOAD_NOT_JSON, PAYLOAD_TOO_LARGE
   */
  saveState(value: unknown): Promise<void>;
  /**
   * Immediately creates a run of a task as this run's child. A key is unique among the parent's children of that task, so another attempt
   * of the parent that spawns the same key gets the same child. Without keys, children are numbered in the order of the calls, so every
   * attempt must spawn them in the same order.
   * @throws TASK_UNKNOWN, FENCE_STALE, OPTION_INVALID (over 10,000 children), PAYLOAD_…; in a remote worker KEY_FORBIDDEN for a task of a
   * group that its key does not allow
   */
  spawn(task: string, payload?: unknown, options?: { key?: string }): Promise<{ runId: number; created: boolean }>;
  /**
   * `return run.fanOut(children, { join })`: spawns these children and ends this run. Once every child has ended, with any outcome and
   * including children spawned earlier, one run of the task `join` is created, which reads the children's results with `inputs`. No slot of
   * concurrency is occupied while the children run.
   */
  fanOut(children: ChildSpec[], options: { join: string; payload?: unknown }): Promise<Continuation>;
  /** `return run.continueAs(payload)`: ends this run and creates the next run of the chain, in one transaction. */
  continueAs(payload?: unknown, options?: { state?: unknown }): Continuation;
  /**
   * `throw run.retryIn("10m", { cause: error })`: the attempt fails with the cause as its error, and the next attempt starts after this
   * time instead of the delay of the task's `retry`. The attempt counts: if it was the last one, the run has failed.
   * @throws DURATION_INVALID, OPTION_INVALID (over 366 days)
   */
  retryIn(after: Duration, options?: { cause?: unknown }): RetryIn;
  /**
   * `return run.snooze("10m")`: postpones the run by this time. The attempt has not failed and does not count for `retry`. The run keeps
   * its key, its state and its slot of concurrency. A run can be snoozed 1,000 times; after that, the attempt fails.
   * @throws DURATION_INVALID, OPTION_INVALID (over 366 days)
   */
  snooze(by: Duration): Snooze;
  /**
   * Returns the runs that led to this run: the children that it joins, the runs that it follows, or the run that it continues.
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
 * Writes to the run's log; never throws. Fields are stored as JSON of up to 256 KiB. An Error is stored as its message, code and stack; a
 * value that cannot be stored is replaced by the reason.
 */
export interface RunLog {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/**
 * The function that executes a run. Its return value is stored as the run's result if it can be converted to JSON; a thrown error fails the
 * attempt.
 */
export type Handler<Payload = unknown, Result = unknown> = (run: Run, payload: Payload) => Result | Promise<Result>;

/** Reports that a run has started or ended in this process, for a live view. Times are in epoch ms of the store's clock. */
export interface RunNotice {
  kind: "started" | "ended" | "retry" | "snoozed";
  runId: number;
  task: string;
  attempt: number;
  slotMs: number | null;
  dueMs: number;
  /**
   * The time since when the run waited only for a worker. It is later than `dueMs` if the run was enqueued late, or first waited
   * for a limit, a rate, a preceding run or the end of a pause.
   */
  readyMs: number;
  startedMs: number;
  endedMs: number | null;
  outcome: "succeeded" | "failed" | "cancelled" | null;
  error: string | null;
}
