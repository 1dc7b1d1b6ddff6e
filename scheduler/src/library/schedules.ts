import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Change, SqlClient } from "../base/change.ts";
import type { Clock } from "../base/clock.ts";
import { CarillonError, isCarillonError } from "../base/errors.ts";
import { jsonText } from "../base/json.ts";
import { meant } from "../base/nearest.ts";
import { checkClient } from "../run/enqueue-options.ts";
import type { ScheduleSpec } from "../schedule/schedule.ts";
import { nextOf } from "../slots/upcoming-slots.ts";
import { awaitRecall } from "../store/recall.ts";
import { everyScheduleOf } from "../store/schedules-of.ts";
import type { Store } from "../store/store.ts";
import { nameOfSchedule, type ScheduleOptions, scheduleCalled } from "../task/schedule-of.ts";
import { defineTask } from "../task/task.ts";
import type { TaskRecord } from "../task/task-record.ts";
import type { DefinedTasks } from "./defined-tasks.ts";
import type { Why } from "./opened.ts";
import { payloadName, validateKept } from "./payload.ts";

export interface NewSchedule<Payload = unknown> extends Omit<ScheduleOptions, "schedule" | "slotPayload">, Why {
  /** Of the runs of its slots; without it null, whatever the task's own slots are given. */
  payload?: Payload;
  /** Store it as a part of your own transaction on the store's database: a pg client that began one. */
  tx?: SqlClient;
}

export interface RemoveSchedule extends Why {
  /**
   * Remove it as a part of your own transaction on the store's database: a pg client that began one. A run that a worker has claimed by
   * then, as it does a second before its time, may begin.
   */
  tx?: SqlClient;
}

/** A schedule of a task, as the store has it. */
export interface NamedSchedule {
  /** As its task calls it: what `schedule` was given. */
  readonly name: string;
  /** As all else calls it, `pause`, the CLI and the API among them: TASK:NAME. */
  readonly task: string;
  readonly schedule: ScheduleSpec;
  readonly payload: unknown;
  readonly paused: boolean;
  /** The next slot that will run; null: it is paused, or none is left. */
  readonly next: Date | null;
}

interface SchedulesOptions {
  defined: DefinedTasks;
  clock: Clock;
  now: () => number;
  change: (why: Why) => Change;
  open: () => Promise<{ store: Store; taskId(task: string): Promise<number> }>;
}

const optionNames = ["payload", "description", "misfire", "calendar", "blackout", "tx", "author", "reason"];

/** Schedules of tasks, made, changed and removed while processes run: see task/schedule-of.ts. */
export class Schedules {
  readonly #options: SchedulesOptions;

  constructor(options: SchedulesOptions) {
    this.#options = options;
  }

  /**
   * Stores a schedule of the task, or changes the one of this name; the same again changes nothing.
   * @param name letters, digits and . _ : / @ -; with the task's name and a colon at most 200 characters
   * @throws TASK_UNKNOWN, TASK_INVALID, OPTION_INVALID, PAYLOAD_…, CALENDAR_UNKNOWN, STORE_…
   */
  async set(
    task: string,
    name: string,
    schedule: ScheduleSpec,
    options: NewSchedule = {},
  ): Promise<NamedSchedule & { changed: boolean }> {
    const unknown = Object.keys(options).find((option) => !optionNames.includes(option));
    if (unknown !== undefined)
      throw new CarillonError(
        "OPTION_INVALID",
        `a schedule has no option ${JSON.stringify(unknown)}${meant(unknown, optionNames)}`,
        { hint: `It has ${optionNames.join(", ")}.` },
      );
    const { payload, tx, author, reason, ...own } = options;
    if (tx !== undefined) checkClient("tx", tx);
    const text = jsonText(payload, payloadName(task));
    const slotPayload: unknown = text === null ? null : JSON.parse(text);
    const schema: StandardSchemaV1 | undefined = this.#options.defined.get(task)?.schema;
    if (schema) await validateKept(schema, slotPayload, task);
    const definition = defineTask(nameOfSchedule(task, name), { ...own, of: task, schedule, slotPayload });
    const { store, taskId } = await this.#options.open();
    await taskId(task);
    const why = { ...(author !== undefined && { author }), ...(reason !== undefined && { reason }) };
    const { record, changed } = await store.tasks.save(definition, null, this.#options.change(why), tx);
    return { ...this.#named(record), changed };
  }

  /** Removes the schedule; its history stays. Runs that have begun go on. @returns false: there is none */
  async remove(task: string, name: string, { tx, ...why }: RemoveSchedule = {}): Promise<boolean> {
    if (tx !== undefined) checkClient("tx", tx);
    const { store } = await this.#options.open();
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

  /** In the order of their names, read from the store as they are asked for. */
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
