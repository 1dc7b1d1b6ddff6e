/** The requests of the measuring process to a process under test, and their answers. */
export interface Calls {
  /** Connects, and creates everything that the contender creates once. */
  open(): void;
  /** Adds `count` runs, numbered from `from`, in calls of `batch`. @returns how long that took */
  add(order: AddOrder): number;
  /**
   * Adds runs one at a time and pauses `pauseMs` after each (± half of it at random, to avoid a fixed rhythm). @returns when each
   * was added; `safe`: when that was answered
   */
  addOneByOne(order: { from: number; count: number; pauseMs: number; safe?: boolean }): Float64Array;
  /** Adds runs one at a time, waits for each result, then pauses `pauseMs` (± half of it). @returns when each result had arrived */
  awaitOneByOne(order: { from: number; count: number; pauseMs: number }): Float64Array;
  work(): void;
  /** Begins to run the added runs, and does not stop. */
  workWithoutEnd(): void;
  everyMinute(order: { tasks: number }): void;
  /** Task k is due each period at `phaseOf` k. */
  everyPeriod(order: { tasks: number; periodMs: number }): void;
  workStored(): void;
  /** The number of runs handled so far. */
  handled(): number;
  /** The number of each handled run, and when its handler began by the monotonic clock. */
  notes(): Float64Array;
  usage(): { cpuUs: number; rssBytes: number };
  /** Collects garbage, which stops the process. @returns the bytes of the heap that are in use then */
  liveBytes(): number;
  stop(): void;
}

export interface AddOrder {
  from: number;
  count: number;
  batch: number;
  /** The number of concurrent calls; default 1. */
  callers?: number;
  /** Epoch milliseconds of the first, and how much later each next one is due; absent: at once. */
  due?: { fromMs: number; everyMs: number };
}

/** The due time in whole milliseconds, because every contender stores these. */
export function dueOf({ fromMs, everyMs }: NonNullable<AddOrder["due"]>, place: number): number {
  return Math.round(fromMs + place * everyMs);
}

/** The offset of a task's due time within each period, so that all tasks are spread over the period. */
export function phaseOf(task: number, tasks: number, periodMs: number): number {
  return Math.floor((task * periodMs) / tasks);
}

export type Ask = { seq: number; call: keyof Calls; order?: unknown };
export type Answer = { seq: number; value: unknown } | { seq: number; failed: string };
