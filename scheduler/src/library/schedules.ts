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
  /** The payload of runs of this schedule's slots; default null, even if the task's own slots have a payload. */
  payload?: Payload;
  /**
   * Store the schedule in your own transaction on the store's database: a pg client that began one, or a transaction of another library.
   */
  tx?: Transaction;
}

export interface RemoveSchedule extends Why {
  /**
   * Remove the schedule in your own transaction on the store's database, like `tx` of an enqueue. A run that a worker has already claimed,
   * which happens up to a second before its due time, may still start.
   */
  tx?: Transaction;
}

/** A schedule in a list that is stored together. */
export interface ScheduleEntry<Payload = unknown> extends Omit<NewSchedule<Payload>, "tx" | keyof Why> {
  /** Letters, digits and . _ : / @ -; with the task's name and a colon at most 200 characters. */
  name: string;
  schedule: ScheduleSpec;
}

export interface SetSchedules extends Why {
  /** Keeps or removes schedules of the task that are not in the list. Default: keep. */
  others?: "keep" | "remove";
  /**
   * Store and remove all of them in your own transaction on the store's database: a pg client that began one, or a transaction of another
   * library.
   */
  tx?: Transaction;
}

/** Names of schedules, without the task's name. Unchanged schedules are not listed. */
export interface SchedulesSet {
  created: string[];
  changed: string[];
  removed: string[];
}

/** A schedule of a task, as the store has it. */
export interface NamedSchedule {
  /** The name that `schedule` was given, without the task's name. */
  readonly name: string;
  /** The full name TASK:NAME, used by `pause`, the CLI, the API and all else. */
  readonly task: string;
  readonly schedule: ScheduleSpec;
  readonly payload: unknown;
  readonly paused: boolean;
  /** The next slot that will run; null: the schedule is paused, or has none left. */
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
/** How many schedules one statement stores. */
const storedTogether = 500;
/** How many removals are made at a time; each is a transaction of its own. */
const removedAtOnce = 4;

/** Creates, changes and removes schedules of tasks while processes run: see task/schedule-of.ts. */
export class Schedules {
  readonly #options: SchedulesOptions;

  constructor(options: SchedulesOptions) {
    this.#options = options;
  }

  /**
   * Stores a schedule of the task, or changes the one of this name; an identical schedule changes nothing.
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
   * Stores many schedules of the task, hundreds per statement; identical schedules change nothing. All are checked before the first is
   * stored. If the store fails midway, the schedules stored so far stay, unless `tx` is given: repeat the call to store the rest.
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

  /** Removes the schedule; its history stays. Runs that have begun continue. @returns false: there was no such schedule */
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

  /** The task's schedules ordered by name, read from the store as they are consumed. */
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
