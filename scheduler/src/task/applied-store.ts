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
  /** Runs that would end with the task: enqueued ones, and due slots, that no worker has. Counted of tasks of the bundle that are not named. */
  waiting: number;
}

export interface AppliedStore {
  /** These, removed ones too, and all that belong to the bundle. */
  read(names: string[], bundle: string): Promise<AppliedTask[]>;
}
