import type { Schedule } from "./schedule.ts";
import { plannedSchedule } from "./slot-rules.ts";
import type { TaskRecord, TaskStore } from "./store.ts";
import type { TaskDefinition } from "./task.ts";

export interface KnownTask {
  taskId: number;
  version: number;
  definition: TaskDefinition;
  schedule: Schedule;
}

/**
 * Definitions by task and version, read from the store when first wanted. A version never changes, so what is here is
 * right for as long as it is asked for by version; only the newest of each task is kept.
 */
export class Definitions {
  readonly #tasks: Pick<TaskStore, "byIds">;
  readonly #known = new Map<number, KnownTask>();

  constructor(tasks: Pick<TaskStore, "byIds">) {
    this.#tasks = tasks;
  }

  /** Reads those that are not here, or are older than the version wanted, in one statement. */
  async ensure(wanted: { taskId: number; version: number }[]): Promise<void> {
    const missing = new Set<number>();
    for (const { taskId, version } of wanted) {
      if ((this.#known.get(taskId)?.version ?? 0) < version) missing.add(taskId);
    }
    if (missing.size === 0) return;
    for (const record of await this.#tasks.byIds([...missing])) this.remember(record);
  }

  get size(): number {
    return this.#known.size;
  }

  /** Reads anew those of the changed tasks that are here in an older version; the others are read when first wanted. */
  async follow(changed: { taskId: number; version: number }[]): Promise<void> {
    await this.ensure(changed.filter(({ taskId }) => this.#known.has(taskId)));
  }

  remember({ taskId, version, definition, calendar }: TaskRecord): KnownTask {
    const present = this.#known.get(taskId);
    if (present && present.version >= version) return present;
    const known = { taskId, version, definition, schedule: plannedSchedule(definition, calendar) };
    this.#known.set(taskId, known);
    return known;
  }

  /** The newest known version; undefined before `ensure`. */
  get(taskId: number): KnownTask | undefined {
    return this.#known.get(taskId);
  }
}
