import type { Carillon } from "../../../scheduler/src/library/carillon.ts";
import type { TaskOptions } from "../../../scheduler/src/task/task.ts";
import type { Notice } from "./notices.ts";
import type { Pace } from "./seen.ts";

/** The surroundings in which a scenario is played: its time, and the worker that runs its handlers. */
export interface World {
  readonly carillon: Carillon;
  readonly pace: Pace;
  /** Everything ends within this time after the last act, in ms. */
  readonly quietMs: number;
  /** Names of tasks, groups and the calendar in the store. */
  taskName(task: number): string;
  groupName(group: number): string;
  readonly calendar: string;
  /** Epoch ms. */
  now(): number;
  /** Lets time pass until `ms`. */
  advanceTo(ms: number): Promise<void>;
  /** Returns once the consequences of the last act have happened. */
  settle(): Promise<void>;
  /**
   * The worker is lost with all its claims.
   * @param tasks the tasks' present options, for a program that defines them anew
   * @returns the runs that it had, once they are no longer its claims, and the time of the loss
   */
  lose(tasks: readonly TaskOptions[]): Promise<{ runIds: number[]; atMs: number }>;
  /** What the handlers have recorded since the scenario's beginning, in the order in which it happened. */
  notices(): readonly Notice[];
}
