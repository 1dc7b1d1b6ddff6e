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

/** The payload argument; it is optional if the handler accepts undefined. */
export type PayloadOf<Input> = undefined extends Input ? [payload?: Input] : [payload: Input];

/** The arguments of `enqueueMany`. The options apply to all payloads, or are a function of each payload and its index. */
export type EnqueueMany<Input> = [
  payloads: Iterable<Input> | AsyncIterable<Input>,
  options?: EnqueueOptions | ((payload: Input, index: number) => EnqueueOptions),
];

export interface Task<Input, Result = unknown> {
  readonly name: string;
  enqueue(...given: [...payload: PayloadOf<Input>, options?: EnqueueOptions]): Promise<RunHandle<Result>>;
  /**
   * Enqueues a run for each payload, thousands per statement. Resolves with the handles in the order of the payloads once all runs
   * are stored. All payloads of an array are validated before the first run is created; the error's path names the invalid payload.
   * A stream is read as fast as the store accepts its payloads. If the store fails in the middle, some runs have been created. To
   * repeat the call safely, use keys, or `tx`, which creates all runs or none.
   * @throws the errors of `enqueue`
   */
  enqueueMany(...given: EnqueueMany<Input>): Promise<RunHandle<Result>[]>;
  /** Runs the task now, in addition to its schedule. */
  run(...given: PayloadOf<Input>): Promise<RunHandle<Result>>;
  /**
   * Stores a named schedule of the task in addition to its own, or replaces the schedule with this name. Example:
   * `schedule("tenant-7", every("1h"))`. An identical schedule changes nothing.
   * @throws TASK_INVALID, PAYLOAD_…, OPTION_INVALID, CALENDAR_UNKNOWN, STORE_…
   */
  schedule(
    name: string,
    when: ScheduleSpec,
    ...options: undefined extends Input
      ? [options?: NewSchedule<Input>]
      : [options: NewSchedule<Input> & { payload: Input }]
  ): Promise<NamedSchedule & { changed: boolean }>;
  /**
   * Stores many named schedules of the task in one call. With `others: "remove"`, schedules that are not in the list are removed.
   * @see Schedules.setAll
   */
  scheduleAll(
    schedules: readonly (undefined extends Input ? ScheduleEntry<Input> : ScheduleEntry<Input> & { payload: Input })[],
    options?: SetSchedules,
  ): Promise<SchedulesSet>;
  /** Removes a named schedule. @returns false if there was no schedule with this name */
  unschedule(name: string, options?: RemoveSchedule): Promise<boolean>;
  /** Yields the named schedules that `schedule` and `scheduleAll` stored, ordered by name. */
  schedules(): AsyncIterable<NamedSchedule>;
  /** Pauses the task until it is resumed, or until a given time. */
  pause(why?: string | Pick<PauseOptions, "reason" | "until">): Promise<void>;
  resume(): Promise<void>;
  /**
   * Returns the next slots after now that will run. Once this process has started or used the task, the slots are computed from the stored
   * definition, including edits made by hand, the calendar and the blackouts; before that, from the definition in this process.
   * @throws CALENDAR_UNKNOWN if the task has a calendar and this process has not started or used the task yet
   */
  next(count?: number): Date[];
}

/**
 * Options of a task whose handler is a module. `isolate` says whether the handler runs in a thread (the default) or a process; it is not
 * stored with the task.
 */
export type IsolatedOptions = TaskOptions & { isolate?: Isolate };

/** All options that code can set. `isolate`, `payload` and `batch` are not stored. */
export type CodeOptions = IsolatedOptions & { payload?: StandardSchemaV1; batch?: BatchOptions };

/** The options of a task whose handler receives several runs at once. */
export type BatchedOptions = TaskOptions & { batch: BatchOptions };

/** Makes the compiler reject the option `batch` for a handler that receives single runs. */
interface OneByOne {
  batch?: never;
}

export type WithSchema<Schema extends StandardSchemaV1> = TaskOptions & { payload: Schema };

/**
 * Defines a task. Every process that defines the task can execute its handler. A handler given by its module's path runs in a thread or
 * process of its own. The definition is stored when this process starts.
 * @throws TASK_DUPLICATE, TASK_INVALID and the errors of the schedule's own check
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

/** A handle for a task that other processes define and execute. */
export type Producer<Input, Result = unknown> = Omit<Task<Input, Result>, "next">;

/** The methods of Carillon that a task handle uses. */
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
