import type { TaskDefinition } from "./task.ts";

/** A task as a plan needs it: what is there, and what the last apply said of it. */
export interface AppliedTask {
  name: string;
  /** Of a removed task: its last. */
  version: number;
  removed: boolean;
  definition: TaskDefinition;
  /** Whose files define it; null: code, an import or someone by hand. */
  bundle: string | null;
  /** As the last apply left it; null: none did. */
  applied: TaskDefinition | null;
  /** Who made the present version, and why. */
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
