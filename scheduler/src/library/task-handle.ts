import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Isolate } from "../executors/isolate/isolates.ts";
import type { EnqueueOptions } from "../run/enqueue-options.ts";
import type { Handler } from "../run/handler.ts";
import type { BatchHandler, BatchOptions } from "../run/handling/batch.ts";
import type { ScheduleSpec } from "../schedule/schedule.ts";
import type { HttpOptions } from "../task/http.ts";
import type { TaskOptions } from "../task/task.ts";
import type { PauseOptions } from "./acts/pause.ts";
import type { ResultOf, RunHandle } from "./run-handle.ts";
import type {
  NamedSchedule,
  NewSchedule,
  RemoveSchedule,
  ScheduleEntry,
  Schedules,
  SchedulesSet,
  SetSchedules,
} from "./schedules.ts";
import type { TaskType } from "./task-type.ts";

/** The payload argument is optional if the handler accepts undefined as its payload. */
export type PayloadOf<Input> = undefined extends Input ? [payload?: Input] : [payload: Input];

/** The options are common to all payloads, or a function of each payload and its index. */
export type EnqueueMany<Input> = [
  payloads: Iterable<Input> | AsyncIterable<Input>,
  options?: EnqueueOptions | ((payload: Input, index: number) => EnqueueOptions),
];

export interface Task<Input, Result = unknown> {
  readonly name: string;
  enqueue(...given: [...payload: PayloadOf<Input>, options?: EnqueueOptions]): Promise<RunHandle<Result>>;
  /**
   * Enqueues a run for each payload, thousands per statement; resolves once all runs are in the store, in the given order. An array is
   * checked as a whole before the first run is made: the error's path names the wrong payload. A stream is read as fast as the store
   * accepts its payloads. If the store fails midway, some runs have been made: to repeat the call safely use keys, or `tx`, which makes all
   * runs or none.
   * @throws as `enqueue`
   */
  enqueueMany(...given: EnqueueMany<Input>): Promise<RunHandle<Result>[]>;
  /** Runs the task now, in addition to its schedule. */
  run(...given: PayloadOf<Input>): Promise<RunHandle<Result>>;
  /**
   * Stores a schedule of the task in addition to its own, or changes the one of this name, such as `schedule("tenant-7", cron("0 9 * *
   * *"))`; an identical schedule changes nothing. @throws TASK_INVALID, PAYLOAD_…, OPTION_INVALID, CALENDAR_UNKNOWN, STORE_…
   */
  schedule(
    name: string,
    when: ScheduleSpec,
    ...options: undefined extends Input
      ? [options?: NewSchedule<Input>]
      : [options: NewSchedule<Input> & { payload: Input }]
  ): Promise<NamedSchedule & { changed: boolean }>;
  /**
   * Stores many schedules of the task at once, and removes those that the list leaves out if `others` is `"remove"`. @see
   * Schedules.setAll
   */
  scheduleAll(
    schedules: readonly (undefined extends Input ? ScheduleEntry<Input> : ScheduleEntry<Input> & { payload: Input })[],
    options?: SetSchedules,
  ): Promise<SchedulesSet>;
  /** @returns false: there was no schedule of this name */
  unschedule(name: string, options?: RemoveSchedule): Promise<boolean>;
  /** The schedules stored by `schedule`, ordered by name. */
  schedules(): AsyncIterable<NamedSchedule>;
  /** Pauses the task until it is resumed, or until a given time. */
  pause(why?: string | Pick<PauseOptions, "reason" | "until">): Promise<void>;
  resume(): Promise<void>;
  /**
   * The next slots after now that will run. Once this process has started or used the task, they are computed from its stored definition,
   * including edits by hand, calendar and blackouts; before that, from its definition here.
   * @throws CALENDAR_UNKNOWN before that, for a task with a calendar
   */
  next(count?: number): Date[];
}

/**
 * The options of a task whose handler is a module, and whether it runs in a thread or a process; default "thread". `isolate` is not stored
 * with the task.
 */
export type IsolatedOptions = TaskOptions & { isolate?: Isolate };

/** All options that code can give; the last three are not stored. */
export type CodeOptions = IsolatedOptions & { payload?: StandardSchemaV1; batch?: BatchOptions };

/** The options of a task whose handler receives several runs at once. */
export type BatchedOptions = TaskOptions & { batch: BatchOptions };

/** For a handler of single runs: the compiler then refuses `batch`. */
interface OneByOne {
  batch?: never;
}

export type WithSchema<Schema extends StandardSchemaV1> = TaskOptions & { payload: Schema };

/**
 * Defines a task. Every process that defines the task can run the handler; a handler given by its module's path runs in a thread or process
 * of its own. The definition is stored when this process starts. @throws TASK_DUPLICATE, TASK_INVALID and the errors of the schedule's own
 * check
 */
export interface DefineTask {
  <Payload, Result, Input>(
    type: TaskType<Payload, Result, Input>,
    options: IsolatedOptions & OneByOne,
    handler: Handler<Payload, Result> | URL | string,
  ): Task<Input, ResultOf<Result>>;
  <Schema extends StandardSchemaV1, Result = unknown>(
    name: string,
    options: WithSchema<Schema> & { isolate?: Isolate } & OneByOne,
    handler: Handler<StandardSchemaV1.InferOutput<Schema>, Result> | URL | string,
  ): Task<StandardSchemaV1.InferInput<Schema>, ResultOf<Result>>;
  <Payload = unknown, Result = unknown>(
    name: string,
    options: TaskOptions & OneByOne,
    handler: Handler<Payload, Result>,
  ): Task<Payload, ResultOf<Result>>;
  <Payload = unknown>(name: string, options: IsolatedOptions, handler: URL | string): Task<Payload>;
  (name: string, options: TaskOptions & { command: NonNullable<TaskOptions["command"]> }): Task<undefined>;
  <Payload = unknown>(name: string, options: TaskOptions & { http: HttpOptions }): Task<Payload>;
  <Payload, Result, Input>(
    type: TaskType<Payload, Result, Input>,
    options: BatchedOptions,
    handler: BatchHandler<Payload, Result>,
  ): Task<Input, ResultOf<Result>>;
  <Schema extends StandardSchemaV1>(
    name: string,
    options: WithSchema<Schema> & BatchedOptions,
    handler: BatchHandler<StandardSchemaV1.InferOutput<Schema>>,
  ): Task<StandardSchemaV1.InferInput<Schema>>;
  <Payload = unknown>(name: string, options: BatchedOptions, handler: BatchHandler<Payload>): Task<Payload>;
}

/** A task that other processes define and run. */
export type Producer<Input, Result = unknown> = Omit<Task<Input, Result>, "next">;

/** The calls that a task handle is built on. */
interface Doing {
  enqueue(task: string, payload: unknown, options?: EnqueueOptions): Promise<RunHandle>;
  enqueueMany(task: string, ...given: EnqueueMany<never>): Promise<RunHandle[]>;
  run(task: string, payload: unknown): Promise<RunHandle>;
  pause(task: string, why: Pick<PauseOptions, "reason" | "until">): Promise<unknown>;
  resume(task: string): Promise<void>;
  readonly schedules: Pick<Schedules, "set" | "setAll" | "remove" | "of">;
}

export const handleOf = (doing: Doing, name: string, next: (count: number) => number[]): Task<unknown> => ({
  name,
  enqueue: (payload, options) => doing.enqueue(name, payload, options),
  enqueueMany: (...given) => doing.enqueueMany(name, ...(given as EnqueueMany<never>)),
  run: (payload) => doing.run(name, payload),
  schedule: (one, when, options) => doing.schedules.set(name, one, when, options),
  scheduleAll: (entries, options) => doing.schedules.setAll(name, entries, options),
  unschedule: (one, options) => doing.schedules.remove(name, one, options),
  schedules: () => doing.schedules.of(name),
  pause: async (why = {}) => void (await doing.pause(name, typeof why === "string" ? { reason: why } : why)),
  resume: () => doing.resume(name),
  next: (count = 1) => next(count).map((ms) => new Date(ms)),
});
