import type { TaskDefinition } from "./task.ts";

/** A task as an apply plan needs it: its present definition, and the one of the last apply. */
export interface AppliedTask {
  name: string;
  /** The version; for a removed task its last one. */
  version: number;
  removed: boolean;
  definition: TaskDefinition;
  /** The bundle whose files define it; null: code, an import or a person. */
  bundle: string | null;
  /** The definition that the last apply stored; null: no apply did. */
  applied: TaskDefinition | null;
  /** The author of the present version, and the reason. */
  author: string;
  reason: string;
  changedMs: number;
  /**
   * Runs that would end with the task: enqueued runs and due slots that no worker has. Counted only for the bundle's tasks that are not
   * named.
   */
  waiting: number;
}

export interface AppliedStore {
  /** Returns these tasks, even removed ones, and all tasks of the bundle. */
  read(names: string[], bundle: string): Promise<AppliedTask[]>;
}
