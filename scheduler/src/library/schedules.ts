import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Change, Why } from "../base/change.ts";
import type { Clock } from "../base/clock.ts";
import { CarillonError, isCarillonError } from "../base/errors.ts";
import { jsonText } from "../base/json.ts";
import { checkNames } from "../base/nearest.ts";
import { clientOf, type Transaction } from "../run/transaction.ts";
import type { ScheduleSpec } from "../schedule/schedule.ts";
import { nextOf } from "../slots/upcoming-slots.ts";
import { awaitRecall } from "../store/recall.ts";
import { everyScheduleOf } from "../store/schedules-of.ts";
import { sideBySide } from "../store/side-by-side.ts";
import type { Store } from "../store/store.ts";
import { nameOfSchedule, type ScheduleOptions, scheduleCalled, scheduleOptions } from "../task/schedule-of.ts";
import { defineTask, type TaskDefinition } from "../task/task.ts";
import type { TaskRecord } from "../task/task-record.ts";
import type { DefinedTasks } from "./defined-tasks.ts";
import { payloadName, validateKept } from "./payload.ts";

export interface NewSchedule<Payload = unknown> extends Omit<ScheduleOptions, "schedule" | "slotPayload">, Why {
  /** The payload of the runs that this schedule creates. Default: null, even if the task's own schedule has a payload. */
  payload?: Payload;
  /**
   * Stores the schedule in the caller's own transaction on the store's database: a pg client that has begun one, or a transaction of
   * another library.
   */
  tx?: Transaction;
}

export interface RemoveSchedule extends Why {
  /**
   * Removes the schedule in the caller's own transaction on the store's database, like `tx` of an enqueue. A run that a worker has already
   * claimed may still start.
   */
  tx?: Transaction;
}

/** One schedule of a list that is stored by one call. */
export interface ScheduleEntry<Payload = unknown> extends Omit<NewSchedule<Payload>, "tx" | keyof Why> {
  /** Letters, digits and . _ : / @ -. The task's name, a colon and this name together may have at most 200 characters. */
  name: string;
  schedule: ScheduleSpec;
}

export interface SetSchedules extends Why {
  /** Whether the task's schedules that are not in the list are kept or removed. Default: "keep". */
  others?: "keep" | "remove";
  /**
   * Stores and removes all schedules in the caller's own transaction on the store's database: a pg client that has begun one, or a
   * transaction of another library.
   */
  tx?: Transaction;
}

/** The names of the schedules that a call created, changed or removed, without the task's name. Unchanged schedules are left out. */
export interface SchedulesSet {
  created: string[];
  changed: string[];
  removed: string[];
}

/** A named schedule of a task, as it is stored. */
export interface NamedSchedule {
  /** The name passed to `schedule`, without the task's name. */
  readonly name: string;
  /** The full name TASK:NAME, which `pause`, the CLI and the API use. */
  readonly task: string;
  readonly schedule: ScheduleSpec;
  readonly payload: unknown;
  readonly paused: boolean;
  /** The next slot that will run; null if the schedule is paused or has no further slot. */
  readonly next: Date | null;
}

interface SchedulesOptions {
  defined: DefinedTasks;
  clock: Clock;
  now: () => number;
  change: (why: Why) => Change;
  open: () => Promise<{ store: Store; taskId(task: string): Promise<number> }>;
}

const entryOptions = ["payload", ...scheduleOptions.filter((name) => name !== "schedule" && name !== "slotPayload")];
const optionNames = [...entryOptions, "tx", "author", "reason"];
/** The largest number of schedules in one call of `saveSchedules`, which creates the new schedules of a call together. */
const storedTogether = 500;
/** The number of concurrent removals; each removal is a transaction of its own. */
const removedAtOnce = 4;

/** Creates, changes and removes named schedules of tasks at run time: see task/schedule-of.ts. */
export class Schedules {
  readonly #options: SchedulesOptions;

  constructor(options: SchedulesOptions) {
    this.#options = options;
  }

  /**
   * Stores a schedule of the task, or replaces the schedule with this name. An identical schedule changes nothing.
   * @param name letters, digits and . _ : / @ -; with the task's name and a colon at most 200 characters
   * @throws TASK_UNKNOWN, TASK_INVALID, OPTION_INVALID, PAYLOAD_…, CALENDAR_UNKNOWN, STORE_…
   */
  async set(
    task: string,
    name: string,
    schedule: ScheduleSpec,
    options: NewSchedule = {},
  ): Promise<NamedSchedule & { changed: boolean }> {
    checkNames("a schedule", options, optionNames);
    const { tx: given, author, reason, ...own } = options;
    const tx = given === undefined ? undefined : clientOf("tx", given);
    const definition = await this.#definition(task, { ...own, name, schedule });
    const { store, taskId } = await this.#options.open();
    if (tx) await store.runs.requireTransaction(tx);
    await taskId(task);
    const { record, changed } = await store.tasks.save(definition, null, this.#options.change({ author, reason }), tx);
    return { ...this.#named(record), changed };
  }

  /**
   * Stores many schedules of the task. One statement creates up to 500 new ones without a calendar; each other changed schedule takes a
   * transaction of its own, or `tx`. Identical schedules change nothing. All schedules are validated before the first is stored. If the
   * store fails in the middle and there is no `tx`, some schedules have been stored; the same call can be repeated.
   * @throws TASK_UNKNOWN, TASK_INVALID, OPTION_INVALID, PAYLOAD_…, CALENDAR_UNKNOWN, STORE_…
   */
  async setAll(task: string, entries: readonly ScheduleEntry[], options: SetSchedules = {}): Promise<SchedulesSet> {
    checkNames("the call", options, ["others", "tx", "author", "reason"]);
    const { others = "keep", tx: given, author, reason } = options;
    if (others !== "keep" && others !== "remove")
      throw new CarillonError("OPTION_INVALID", `others is ${JSON.stringify(others)}`, {
        hint: 'Say "keep" or "remove".',
        path: "others",
      });
    const tx = given === undefined ? undefined : clientOf("tx", given);
    if (!Array.isArray(entries))
      throw new CarillonError("OPTION_INVALID", "the schedules are no list", {
        hint: "Give a list of { name, schedule, payload }.",
      });
    const definitions = new Map<string, TaskDefinition>();
    for (const [n, entry] of entries.entries()) {
      checkNames("a schedule", entry, ["name", "schedule", ...entryOptions], `[${n}]`);
      if (definitions.has(entry.name))
        throw new CarillonError("OPTION_INVALID", `two schedules are called ${JSON.stringify(entry.name)}`, {
          hint: "Each name may be given once.",
          path: `[${n}].name`,
        });
      definitions.set(entry.name, await this.#definition(task, entry));
    }
    const { store, taskId } = await this.#options.open();
    if (tx) await store.runs.requireTransaction(tx);
    await taskId(task);
    const change = this.#options.change({ author, reason });
    const called = (name: string) => name.slice(task.length + 1);
    const set: SchedulesSet = { created: [], changed: [], removed: [] };
    const all = [...definitions.values()];
    for (let from = 0; from < all.length; from += storedTogether) {
      const saved = await store.tasks.saveSchedules(task, all.slice(from, from + storedTogether), change, tx);
      set.created.push(...saved.created.map(called));
      set.changed.push(...saved.changed.map(called));
    }
    if (others === "remove") {
      const leave: string[] = [];
      for await (const { name } of everyScheduleOf(store.tasks, task))
        if (!definitions.has(called(name))) leave.push(called(name));
      await sideBySide(leave, tx ? 1 : removedAtOnce, async (name) => {
        if (await this.remove(task, name, { author, reason, tx })) set.removed.push(name);
      });
    }
    return set;
  }

  async #definition(task: string, { name, schedule, payload, ...own }: ScheduleEntry): Promise<TaskDefinition> {
    if (typeof name !== "string")
      throw new CarillonError("OPTION_INVALID", `the name of a schedule of task ${task} is ${JSON.stringify(name)}`, {
        hint: "Give each schedule a name, such as tenant-7.",
        path: "name",
      });
    const text = jsonText(payload, payloadName(task));
    const slotPayload: unknown = text === null ? null : JSON.parse(text);
    const schema: StandardSchemaV1 | undefined = this.#options.defined.schemaOf(task);
    if (schema) await validateKept(schema, slotPayload, task);
    return defineTask(nameOfSchedule(task, name), { ...own, of: task, schedule, slotPayload });
  }

  /**
   * Removes the schedule but keeps its history. Runs that have started continue. @returns false if the task had no schedule of this
   * name
   */
  async remove(task: string, name: string, { tx: given, ...why }: RemoveSchedule = {}): Promise<boolean> {
    const tx = given === undefined ? undefined : clientOf("tx", given);
    const { store } = await this.#options.open();
    if (tx) await store.runs.requireTransaction(tx);
    try {
      const change = this.#options.change(why);
      const { recalled } = await store.tasks.removeSchedule(nameOfSchedule(task, name), task, change, tx);
      await awaitRecall(store.runs, this.#options.clock, recalled);
      return true;
    } catch (error) {
      if (isCarillonError(error, "TASK_UNKNOWN")) return false;
      throw error;
    }
  }

  /** Yields the task's schedules, ordered by name. They are read from the store in pages as they are consumed. */
  async *of(task: string): AsyncGenerator<NamedSchedule, void, undefined> {
    const { store } = await this.#options.open();
    for await (const record of everyScheduleOf(store.tasks, task)) yield this.#named(record);
  }

  #named(record: TaskRecord): NamedSchedule {
    const { definition, paused } = record;
    const next = nextOf(record, this.#options.now());
    return {
      name: scheduleCalled(definition) as string,
      task: record.name,
      schedule: definition.schedule,
      payload: definition.slotPayload,
      paused: paused !== null,
      next: next === null ? null : new Date(next),
    };
  }
}
