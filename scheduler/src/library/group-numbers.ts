import type { TaskStore } from "../task/task-store.ts";

/** Ids of the groups that this process's worker claims from. A restored store may have lost a group, and created it with another id. */
export class GroupNumbers {
  /** A list that is updated in place, because the worker reads it at each claim. */
  readonly ids: number[] = [];

  /** @returns true if an id is new or has changed */
  async read(names: readonly string[], tasks: Pick<TaskStore, "group">): Promise<boolean> {
    const ids = await Promise.all(names.map((name) => tasks.group(name)));
    const before = this.ids.splice(0, this.ids.length, ...ids);
    return ids.some((id) => !before.includes(id));
  }
}
