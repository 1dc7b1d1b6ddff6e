import type { TaskStore } from "../task/task-store.ts";

/** Numbers of the groups that this process's worker claims from. A store that went back may have lost a group, and have it anew under another. */
export class GroupNumbers {
  /** The worker reads it at each claim. */
  readonly ids: number[] = [];

  /** @returns whether one is another than before */
  async read(names: readonly string[], tasks: Pick<TaskStore, "group">): Promise<boolean> {
    const ids = await Promise.all(names.map((name) => tasks.group(name)));
    const before = this.ids.splice(0, this.ids.length, ...ids);
    return ids.some((id) => !before.includes(id));
  }
}
