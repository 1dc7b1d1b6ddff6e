/** The requests of the measuring process to a process under test, and their answers. */
export interface Calls {
  /** Connects, and makes everything that the contender makes once. */
  open(): void;
  /** Adds `count` runs, numbered from `from`, in calls of `batch`. @returns how long that took */
  add(order: AddOrder): number;
  /**
   * Adds one, waits `pauseMs` (± half of it, so that no rhythm is met), and so on. @returns when each was added; `safe`: when that was
   * answered
   */
  addOneByOne(order: { from: number; count: number; pauseMs: number; safe?: boolean }): Float64Array;
  /** Adds one, waits for its result, then `pauseMs` (± half of it), and so on. @returns when each result was there */
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
  /** The number of calls at once; default 1. */
  callers?: number;
  /** Epoch milliseconds of the first, and how much later each next one is due; absent: at once. */
  due?: { fromMs: number; everyMs: number };
}

/** Whole milliseconds, as every contender stores them. */
export function dueOf({ fromMs, everyMs }: NonNullable<AddOrder["due"]>, place: number): number {
  return Math.round(fromMs + place * everyMs);
}

/** Where in each period a task is due, so that all are spread over it. */
export function phaseOf(task: number, tasks: number, periodMs: number): number {
  return Math.floor((task * periodMs) / tasks);
}

export type Ask = { seq: number; call: keyof Calls; order?: unknown };
export type Answer = { seq: number; value: unknown } | { seq: number; failed: string };
