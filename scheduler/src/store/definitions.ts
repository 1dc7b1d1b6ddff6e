import { limits } from "../base/limits.ts";
import type { Calendar } from "../schedule/calendar.ts";
import type { Schedule } from "../schedule/schedule.ts";
import { plannedSchedule } from "../schedule/slot-rules.ts";
import type { ZonesInForce } from "../schedule/zone-rules.ts";
import type { TaskDefinition } from "../task/task.ts";
import type { TaskRecord } from "../task/task-record.ts";
import type { TaskStore } from "../task/task-store.ts";

export interface KnownTask {
  readonly taskId: number;
  readonly version: number;
  readonly definition: TaskDefinition;
  /** @throws ZONE_UNKNOWN and similar errors if another process has newer data (such as a newer tzdata) than this one */
  readonly schedule: Schedule;
}

/** A schedule is parsed on first use: a process that cannot parse it can still run the task's runs. */
class Known implements KnownTask {
  readonly taskId: number;
  readonly version: number;
  readonly definition: TaskDefinition;
  readonly #calendar: Calendar | undefined;
  readonly #accountedMs: readonly number[] | undefined;
  readonly #zones: ZonesInForce | undefined;
  #schedule: Schedule | undefined;

  constructor({ taskId, version, definition, calendar, accountedMs, zones }: TaskRecord) {
    this.taskId = taskId;
    this.version = version;
    this.definition = definition;
    this.#calendar = calendar;
    this.#accountedMs = accountedMs;
    this.#zones = zones;
  }

  get schedule(): Schedule {
    this.#schedule ??= plannedSchedule(this.definition, this.#calendar, this.#accountedMs, this.#zones);
    return this.#schedule;
  }
}

/**
 * Definitions by task and version, read from the store on first use. A version never changes, so an entry is correct for any caller that
 * names the version. Only the newest version of each task is kept, and of a million tasks only the most recently used: a definition that
 * was not used while half of `limits.definitionsKept` others were is read again.
 */
export class Definitions {
  readonly #tasks: Pick<TaskStore, "byIds">;
  /** Entries used since the generations last changed; `#old` has those of the generation before. */
  #young = new Map<number, KnownTask>();
  #old = new Map<number, KnownTask>();

  readonly #kept: number;

  constructor(tasks: Pick<TaskStore, "byIds">, kept: number = limits.definitionsKept) {
    this.#tasks = tasks;
    this.#kept = kept;
  }

  /** Reads, in one statement, the definitions that are not cached, or that are cached in an older version than the wanted one. */
  async ensure(wanted: { taskId: number; version: number }[]): Promise<void> {
    const missing = new Set<number>();
    for (const { taskId, version } of wanted) {
      if ((this.get(taskId)?.version ?? 0) < version) missing.add(taskId);
    }
    if (missing.size === 0) return;
    for (const record of await this.#tasks.byIds([...missing])) this.remember(record);
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** Reads again those of the changed tasks that are cached in an older version; other tasks are read on first use. */
  async follow(changed: { taskId: number; version: number }[]): Promise<void> {
    await this.ensure(changed.filter(({ taskId }) => this.#young.has(taskId) || this.#old.has(taskId)));
  }

  /** Empties the cache: the store was restored to an earlier state, and has older versions than some cached ones. */
  forget(): void {
    this.#young = new Map();
    this.#old = new Map();
  }

  remember(record: TaskRecord): KnownTask {
    const present = this.get(record.taskId);
    if (present && present.version >= record.version) return present;
    const known = new Known(record);
    this.#keep(known);
    return known;
  }

  /** The newest cached version; undefined before `ensure` has read it, or if it was not used for long and was dropped. */
  get(taskId: number): KnownTask | undefined {
    const young = this.#young.get(taskId);
    if (young) return young;
    const old = this.#old.get(taskId);
    if (old) this.#keep(old);
    return old;
  }

  #keep(known: KnownTask): void {
    this.#old.delete(known.taskId);
    this.#young.set(known.taskId, known);
    if (this.#young.size < this.#kept / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
  }
}
