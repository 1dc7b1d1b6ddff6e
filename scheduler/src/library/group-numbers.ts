import type { TaskStore } from "../task/task-store.ts";

/**
 * The ids of the groups from which this process's worker claims runs. They are read again after the store was restored from a backup,
 * because a group may then have another id.
 */
export class GroupNumbers {
  /** The ids. The array is updated in place, because the worker reads it at each claim. */
  readonly ids: number[] = [];

  /** Reads the ids of the named groups. @returns true if at least one id was not in the list before */
  async read(names: readonly string[], tasks: Pick<TaskStore, "group">): Promise<boolean> {
    const ids = await Promise.all(names.map((name) => tasks.group(name)));
    const before = this.ids.splice(0, this.ids.length, ...ids);
    return ids.some((id) => !before.includes(id));
  }
}
