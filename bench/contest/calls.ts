/** The requests that the measuring process sends to a process under test, and their results. */
export interface Calls {
  /** Connects, and creates the contender's queue or schema. */
  open(): void;
  /** Adds `count` runs, numbered from `from`, in calls of `batch` runs. @returns the time that this took, in ms */
  add(order: AddOrder): number;
  /**
   * Adds runs one at a time and pauses `pauseMs` after each (± half of `pauseMs` at random, to avoid a fixed rhythm).
   * @returns for each run the time on the monotonic clock at which the call began, or with `safe` the time at which the call
   * resolved
   */
  addOneByOne(order: { from: number; count: number; pauseMs: number; safe?: boolean }): Float64Array;
  /**
   * Adds runs one at a time, waits for each result, then pauses `pauseMs` (± half of `pauseMs` at random).
   * @returns the time at which each result arrived
   */
  awaitOneByOne(order: { from: number; count: number; pauseMs: number }): Float64Array;
  work(): void;
  /** Starts to execute the added runs with a handler that never ends. */
  workWithoutEnd(): void;
  everyMinute(order: { tasks: number }): void;
  /**
   * Defines `tasks` tasks with the period `periodMs` and executes them; task k is due in each period at the offset
   * `phaseOf(k, tasks, periodMs)`.
   */
  everyPeriod(order: { tasks: number; periodMs: number }): void;
  workStored(): void;
  /** The number of runs handled so far. */
  handled(): number;
  /** Returns pairs of numbers: the number of each handled run, and the start of its handler on the monotonic clock, in ms. */
  notes(): Float64Array;
  usage(): { cpuUs: number; rssBytes: number };
  /** Forces a garbage collection, which blocks the process. @returns the bytes of the heap that are then in use */
  liveBytes(): number;
  stop(): void;
}

export interface AddOrder {
  from: number;
  count: number;
  batch: number;
  /** The number of concurrent calls that add runs; default 1. */
  callers?: number;
  /** The due time of the first run in epoch ms, and the interval to each next run in ms; without it all runs are due at once. */
  due?: { fromMs: number; everyMs: number };
}

/** Returns the due time of the run at `place`, rounded to whole ms because the contenders' calls take whole ms. */
export function dueOf({ fromMs, everyMs }: NonNullable<AddOrder["due"]>, place: number): number {
  return Math.round(fromMs + place * everyMs);
}

/** Returns the offset of a task's due time in each period, in ms. The offsets spread all tasks evenly over the period. */
export function phaseOf(task: number, tasks: number, periodMs: number): number {
  return Math.floor((task * periodMs) / tasks);
}

export type Ask = { seq: number; call: keyof Calls; order?: unknown };
export type Answer = { seq: number; value: unknown } | { seq: number; failed: string };
