import type { Json } from "../base/json.ts";
import type { TaskDefinition } from "./task.ts";

/** What an apply plan needs of a task: its present definition, and that of the last apply. */
export interface AppliedTask {
  name: string;
  /** The present version; the last one for a removed task. */
  version: number;
  removed: boolean;
  definition: TaskDefinition;
  /** The bundle whose files define the task; null if application code, an import or a user defines it. */
  bundle: string | null;
  /** The definition that the last apply stored; null if no apply has stored one. */
  applied: TaskDefinition | null;
  /** The author of the present version; `reason` is the author's reason. */
  author: string;
  reason: string;
  changedMs: number;
  /**
   * The number of runs that would end if the task were removed: enqueued runs and due slots that no worker has claimed. It is counted only
   * for tasks of the bundle that are not among the requested names.
   */
  waiting: number;
}

/** The kinds of definitions besides tasks that files contain: alarm rules and incoming webhooks. */
export const itemKinds = ["alarm", "hook"] as const;
export type ItemKind = (typeof itemKinds)[number];

/** What an apply plan needs of an alarm rule or a hook: see `AppliedTask`. */
export interface AppliedItem {
  name: string;
  version: number;
  content: Record<string, Json>;
  bundle: string | null;
  /** The content as the files of the last apply had it; null if no apply has stored it. */
  applied: Record<string, Json> | null;
  author: string;
  reason: string;
  changedMs: number;
}

export interface AppliedStore {
  /** Returns the tasks with these names, even removed ones, and all tasks of the bundle. */
  read(names: string[], bundle: string): Promise<AppliedTask[]>;
  /** Returns the alarm rules or hooks with these names, without removed ones, and all of the bundle, ordered by name. */
  items(kind: ItemKind, names: string[], bundle: string): Promise<AppliedItem[]>;
}
