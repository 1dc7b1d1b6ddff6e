import type { Why } from "../../base/change.ts";
import { awaitRecall } from "../../store/recall.ts";
import { checkGroupLimit } from "../../task/group-store.ts";
import type { TaskDefinition } from "../../task/task.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import type { Acting } from "./acting.ts";
import { type PauseOptions, type PauseResult, pauseChange } from "./pause.ts";

export type SaveOptions = Why & { expectedVersion?: number | null };
export type Saved = { record: TaskRecord; changed: boolean };

/** Operations on one task or one group. The public methods of Carillon call these methods and document them. */
export class TaskActs {
  readonly #options: Acting;

  constructor(options: Acting) {
    this.#options = options;
  }

  async pause(task: string, { until, ...why }: PauseOptions): Promise<PauseResult> {
    const { store } = await this.#options.open();
    const { recalled, held, skipped } = await store.tasks.pause(task, pauseChange(this.#options.change(why), until));
    return { started: await awaitRecall(store.runs, this.#options.clock, recalled), held, skipped };
  }

  async resume(task: string, why: Why): Promise<void> {
    const { store } = await this.#options.open();
    await store.tasks.resume(task, this.#options.change(why));
  }

  async limitGroup(group: string, runs: number | null, why: Why): Promise<void> {
    checkGroupLimit(runs);
    const { store } = await this.#options.open();
    await store.groups.limit(group, runs, this.#options.change(why));
  }

  async remove(task: string, why: Why): Promise<void> {
    const { store } = await this.#options.open();
    const { recalled } = await store.tasks.remove(task, this.#options.change(why));
    await awaitRecall(store.runs, this.#options.clock, recalled);
  }

  async save(definition: TaskDefinition, { expectedVersion = null, ...why }: SaveOptions): Promise<Saved> {
    const { store } = await this.#options.open();
    return store.tasks.save(definition, expectedVersion, this.#options.change(why));
  }
}
