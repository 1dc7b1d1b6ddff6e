import type { Duration } from "../base/duration.ts";
import type { Json } from "../base/json.ts";
import type { Continuation, RunInput } from "./flow.ts";
import type { RetryIn, Snooze } from "./handling/postponed.ts";
import type { Transaction } from "./transaction.ts";

/** The run that a handler serves, as the handler sees it. */
export interface Run {
  readonly id: number;
  readonly task: string;
  /** The name of the task's schedule whose slot this is. null: a slot of the task's own schedule, or an enqueued run. */
  readonly schedule: string | null;
  /** The nominal time this run stands for; null when it was enqueued. */
  readonly slot: Date | null;
  readonly due: Date;
  /** From 1. */
  readonly attempt: number;
  readonly key: string | null;
  /** Its enqueue's labels, and its task's `runLabels`. */
  readonly labels: Readonly<Record<string, string>>;
  /** Which part this is, from 0, for a task with `route: "broadcast"` or `{ shards }`; else null. */
  readonly shard: { readonly index: number; readonly total: number } | null;
  /**
   * Higher than the fence of each earlier attempt of this run: pass it to the system that you write to, and let that refuse a lower one of
   * the same run. Claims are made ahead, so runs of a task may start in another order than their fences. A fence orders the runs of a task
   * only where they cannot overlap.
   */
  readonly fence: number;
  /** Aborts on timeout, cancel, and when the claim can no longer be trusted; its reason is a CarillonError. */
  readonly signal: AbortSignal;
  readonly log: RunLog;
  /**
   * A secret's current value, or its value in one of the kept versions (the present one and the one before). From then on the value is
   * removed from everything that this process's runs log, return, show and throw.
   * @throws SECRET_UNKNOWN, SECRET_FORBIDDEN, SECRET_KEY_MISSING, FENCE_STALE
   */
  secret(name: string, options?: { version?: number }): Promise<string>;
  /** Shows how far the run is: any small JSON. */
  progress(value: unknown): void;
  /**
   * Completes the run inside your own PostgreSQL transaction on the store's database: your writes and the completion
   * happen both or not at all. Return from the handler soon after you commit.
   * @param transaction a pg client on which you began one, or a transaction of Drizzle, Kysely, Knex, TypeORM or postgres.js
   * @throws FENCE_STALE when the claim is no longer this run's: roll back; OPTION_INVALID for a pool, which has no transaction
   */
  complete(transaction: Transaction, result?: unknown): Promise<void>;
  /** The value that `saveState` kept, in this attempt or an earlier one; null: none. Gone when the run has ended. */
  readonly state: Json;
  /**
   * Keeps the run's state: any JSON up to 256 KiB. Resolves once a later attempt would find it.
   * @throws FENCE_STALE when the claim is no longer this run's, PAYLOAD_NOT_JSON, PAYLOAD_TOO_LARGE
   */
  saveState(value: unknown): Promise<void>;
  /**
   * Makes a run of a task as this run's child, at once. A child's key is unique among its parent's children of that task, so another
   * attempt of the parent that spawns it again finds it. Without a key the child is numbered in the order of calls: then every attempt must
   * spawn in the same order.
   * @throws TASK_UNKNOWN, FENCE_STALE, OPTION_INVALID (over 10,000 children), PAYLOAD_…; in a remote worker KEY_FORBIDDEN
   * for a task of a group that its key does not allow
   */
  spawn(task: string, payload?: unknown, options?: { key?: string }): Promise<{ runId: number; created: boolean }>;
  /**
   * `return run.fanOut(children, { join })`: spawns these and ends this run. Once every child has ended, with any outcome and including
   * those spawned before, it runs the task `join` once. That run reads their results with `inputs`. No slot of concurrency is held
   * meanwhile.
   */
  fanOut(children: ChildSpec[], options: { join: string; payload?: unknown }): Promise<Continuation>;
  /** `return run.continueAs(payload)`: ends this run and begins the next of the chain, in one write. */
  continueAs(payload?: unknown, options?: { state?: unknown }): Continuation;
  /**
   * `throw run.retryIn("10m", { cause: error })`: the attempt fails, with the cause as its error, and the next try comes after this time
   * instead of the pause of the task's `retry`. It counts as a try: after the last one the run has failed.
   * @throws DURATION_INVALID, OPTION_INVALID (over 366 days)
   */
  retryIn(after: Duration, options?: { cause?: unknown }): RetryIn;
  /**
   * `return run.snooze("10m")`: the run is put off by this time. The attempt has not failed, and uses up no try; the run keeps its key, its
   * state and its slot of concurrency. A run can be snoozed 1,000 times; then the attempt fails.
   * @throws DURATION_INVALID, OPTION_INVALID (over 366 days)
   */
  snooze(by: Duration): Snooze;
  /**
   * The runs that this run comes from: the children that it joins, the runs it comes after, or the one it goes on from.
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
 * Never throws. Fields are kept as JSON of up to 256 KiB: Errors by message, code and stack; a value that cannot be kept is replaced by the
 * reason.
 */
export interface RunLog {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** The return value, if it can be written as JSON, is kept as the run's result; a throw fails the attempt. */
export type Handler<Payload = unknown, Result = unknown> = (run: Run, payload: Payload) => Result | Promise<Result>;

/** Reports runs as they happen here, for a live view. Times are by the store's clock. */
export interface RunNotice {
  kind: "started" | "ended" | "retry" | "snoozed";
  runId: number;
  task: string;
  attempt: number;
  slotMs: number | null;
  dueMs: number;
  startedMs: number;
  endedMs: number | null;
  outcome: "succeeded" | "failed" | "cancelled" | null;
  error: string | null;
}
