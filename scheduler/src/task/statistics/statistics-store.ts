import type { Counters } from "../task-record.ts";

/** Figures of tasks by the hour, which are kept longer than the history of runs. Hours are counted from 1970, in UTC. */
export interface StatisticsStore {
  /**
   * Adds the runs that ended since the last call to the hourly figures of their tasks. Each run is added at most once, even if several
   * processes call this at the same time. A run is left out for good if its end is committed only after the call that covers that time.
   * @param untilMs the call adds runs that ended before this time, and at most those of `mostMs` after the first one; a time in which no
   * run ended is skipped in one call, however long it is
   * @returns the time up to which runs have been added, in epoch ms
   */
  addTimes(untilMs: number, mostMs: number): Promise<number>;
  /**
   * Merges hours before `beforeHour` by day: the day's durations get rows at its first hour, and of its counters only the last row remains.
   * Deletes rows from before `deleteBeforeHour`, except the last row of each task's counters.
   */
  merge(beforeHour: number, deleteBeforeHour: number): Promise<void>;
  /**
   * Reads the figures of one task.
   * @param fromHour the first hour
   * @returns the task's counters at the end of each hour in which they rose, oldest first. The first row may be from before `fromHour`, as
   * the base of comparison; the last row is the present state
   */
  read(taskId: number, fromHour: number, nowMs: number): Promise<TaskFigures>;
}

/** The runs of one hour whose durations lie in one size class. */
export interface TimesRow {
  hour: number;
  kind: number;
  bucket: number;
  runs: number;
  /** The sum of the durations, ms. */
  sumMs: number;
  /** The longest of these durations, in ms. */
  mostMs: number;
}

export interface TaskFigures {
  counts: ({ hour: number } & Counters)[];
  times: TimesRow[];
  /** A row whose hour is before this one covers a whole day. */
  mergedHour: number;
  /** The time up to which ended runs have been added to `times`, in epoch ms; null if no call has begun to add them. */
  timesUntilMs: number | null;
}
