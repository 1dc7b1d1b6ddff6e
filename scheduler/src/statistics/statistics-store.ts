import type { Counters } from "../task/task-record.ts";

/** Figures of tasks by the hour, which are kept longer than the history of runs. Hours are counted from 1970, in UTC. */
export interface StatisticsStore {
  /**
   * Adds the runs that ended since the last call to the tasks' hours. Each call adds a run once, whatever calls at the same time. A run that
   * another process ended, but had not yet stored, when the time of its end was read is left out.
   * @param untilMs runs that ended before this time, at most `mostMs` of time at once
   * @returns up to when runs are added by now, epoch ms
   */
  addTimes(untilMs: number, mostMs: number): Promise<number>;
  /** Merges hours before `hour` into one row for each day, and deletes days before `day`, in both cases at the hours' own numbers. */
  merge(beforeHour: number, deleteBeforeHour: number): Promise<void>;
  /**
   * Reads the figures of one task. @param fromHour the first hour
   * @returns counters at the end of each hour in which they rose, oldest first, from the last such hour before `fromHour` on; the last one is
   * the present state
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
  /** The longest of them, ms. */
  mostMs: number;
}

export interface TaskFigures {
  counts: ({ hour: number } & Counters)[];
  times: TimesRow[];
  /** Rows of hours before this one stand for a whole day. */
  mergedHour: number;
  /** Up to when ended runs are in `times`, epoch ms; null: none was added yet. */
  timesUntilMs: number | null;
}
