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
  /** @throws ZONE_UNKNOWN or a similar error if the definition needs newer data (such as tzdata) than this process has */
  readonly schedule: Schedule;
}

/** A cached definition. The schedule is parsed on first use, so that a process that cannot parse it can still execute the task's runs. */
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
 * A cache of task definitions, which are read from the store on first use. A version never changes, so an entry is correct for every caller
 * that asks for its version. Only the newest version of each task is cached, and with very many tasks only the most recently used ones: an
 * entry is dropped if it is not used while half of `limits.definitionsKept` others are.
 */
export class Definitions {
  readonly #tasks: Pick<TaskStore, "byIds">;
  /** The entries used since the last swap of the two maps; `#old` has entries that were used only before it. */
  #young = new Map<number, KnownTask>();
  #old = new Map<number, KnownTask>();

  readonly #kept: number;

  constructor(tasks: Pick<TaskStore, "byIds">, kept: number = limits.definitionsKept) {
    this.#tasks = tasks;
    this.#kept = kept;
  }

  /** Reads, in one statement, the definitions that are missing in the cache or cached in an older version than the wanted one. */
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

  /** Reads changed tasks again if they are cached in an older version. Other changed tasks are read on first use. */
  async follow(changed: { taskId: number; version: number }[]): Promise<void> {
    await this.ensure(changed.filter(({ taskId }) => this.#young.has(taskId) || this.#old.has(taskId)));
  }

  /** Empties the cache after the store was restored from a backup, because the store then has older versions than some cached ones. */
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

  /** Returns the newest cached version; undefined if the cache has none. */
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
