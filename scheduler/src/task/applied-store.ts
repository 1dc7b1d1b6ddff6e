import type { TaskDefinition } from "./task.ts";

/** A task as an apply plan needs it: its present definition, and the one of the last apply. */
export interface AppliedTask {
  name: string;
  /** The present version; for a removed task, its last one. */
  version: number;
  removed: boolean;
  definition: TaskDefinition;
  /** The bundle whose files define the task; null: it is defined by code, an import or a person. */
  bundle: string | null;
  /** The definition that the last apply stored; null: no apply has stored one. */
  applied: TaskDefinition | null;
  /** The author of the present version, and the reason. */
  author: string;
  reason: string;
  changedMs: number;
  /**
   * Runs that would end with the task: enqueued runs and due slots that no worker has claimed. Counted only for tasks of the bundle that
   * are not among `names`.
   */
  waiting: number;
}

export interface AppliedStore {
  /** Returns these tasks, even removed ones, and all tasks of the bundle. */
  read(names: string[], bundle: string): Promise<AppliedTask[]>;
}
