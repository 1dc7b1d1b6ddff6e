import type { Carillon } from "../../../scheduler/src/library/carillon.ts";
import type { TaskOptions } from "../../../scheduler/src/task/task.ts";
import type { Notice } from "./notices.ts";
import type { Pace } from "./seen.ts";

/** The environment in which a scenario is played: its time, its scheduler, and the worker that runs its handlers. */
export interface World {
  readonly carillon: Carillon;
  readonly pace: Pace;
  /** All runs must have ended this long after the last act, in ms. */
  readonly quietMs: number;
  /** The store's names of tasks, groups and the calendar. */
  taskName(task: number): string;
  groupName(group: number): string;
  readonly calendar: string;
  /** The current time, epoch ms. */
  now(): number;
  /** Lets time pass until `ms`, epoch ms. */
  advanceTo(ms: number): Promise<void>;
  /** Returns once the consequences of the last act have happened. */
  settle(): Promise<void>;
  /**
   * Makes the worker lose all its claims, as if its process had died. If the worker is a real process, it is killed and another one
   * starts. Resolves once the claims no longer belong to the worker.
   * @param tasks the present options of the tasks, which the new worker process defines
   * @returns the runs that the worker had claimed, and the time of the loss in epoch ms
   */
  lose(tasks: readonly TaskOptions[]): Promise<{ runIds: number[]; atMs: number }>;
  /** What the handlers have recorded since the scenario's beginning, in the order of the events. */
  notices(): readonly Notice[];
}
