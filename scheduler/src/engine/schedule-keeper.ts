import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { TaskStore } from "../task/task-store.ts";
import { SingleFlight } from "./single-flight.ts";

export interface ScheduleKeeperOptions {
  store: { tasks: Pick<TaskStore, "followTasks"> };
  membership: Pick<Membership, "term" | "node">;
  storeClock: StoreClock;
  log: Log;
}

/**
 * Guarantees that a task's named schedules are updated after each change of the task, and removed with it. The leader checks the schedules
 * of each task of which it receives a change, and all schedules when it becomes the leader or signals may have been lost. Two leaders at
 * once do no harm, because a schedule's definition is written while its task is locked.
 */
export class ScheduleKeeper {
  readonly #options: ScheduleKeeperOptions;
  readonly #flight: SingleFlight;
  /** Tasks that have changed since the last check; null: any task may have changed. */
  #changed: Set<number> | null = null;

  constructor(options: ScheduleKeeperOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("schedules of changed tasks", options.log, () => this.#look());
  }

  onPulse(): void {
    // All tasks must be checked: no check has been made yet, or the last one failed.
    if (this.#changed === null) this.onChanged(null);
  }

  /** @param taskIds the changed tasks; null: any task, because changes may have been missed */
  onChanged(taskIds: number[] | null): void {
    if (this.#options.membership.term() === null) return;
    if (taskIds === null) this.#changed = null;
    else for (const taskId of taskIds) this.#changed?.add(taskId);
    void this.#flight.run();
  }

  stop(): Promise<void> {
    return this.#flight.stop();
  }

  async #look(): Promise<void> {
    const { store, membership, storeClock, log } = this.#options;
    const change = { author: membership.node, reason: "", nowMs: storeClock.now() };
    const taskIds = this.#changed && [...this.#changed];
    this.#changed = new Set();
    try {
      const { changed, removed, left } = await store.tasks.followTasks(taskIds, change);
      if (changed > 0) log.info({ schedules: changed }, "schedules follow their tasks, which were changed");
      if (removed > 0) log.info({ schedules: removed }, "schedules were removed with their tasks");
      if (left.length > 0)
        log.error(
          { ...left[0], schedules: left.length },
          "the schedule cannot follow its task, and goes on as it was, as do others like it",
        );
    } catch (error) {
      this.#changed = null;
      throw error;
    }
  }
}
