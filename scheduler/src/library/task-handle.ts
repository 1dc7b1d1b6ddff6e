import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Isolate } from "../executors/isolate/isolates.ts";
import type { EnqueueOptions } from "../run/enqueue-options.ts";
import type { TaskOptions } from "../task/task.ts";
import type { PauseOptions } from "./pause.ts";

export interface RunHandle {
  runId: number;
  /** False: an unfinished run had the key already, and this is that run. */
  created: boolean;
}

/** It may be left out where there need be none. */
type PayloadOf<Input> = undefined extends Input ? [payload?: Input] : [payload: Input];

export interface Task<Input> {
  readonly name: string;
  enqueue(...given: [...payload: PayloadOf<Input>, options?: EnqueueOptions]): Promise<RunHandle>;
  /** Runs it now, beside its schedule. */
  run(...given: PayloadOf<Input>): Promise<RunHandle>;
  /** Until it is resumed, or until a time to come. */
  pause(why?: string | Pick<PauseOptions, "reason" | "until">): Promise<void>;
  resume(): Promise<void>;
  /**
   * The next slots after now that will run, as they are planned: by the task as the store has it, edits by hand, calendar and
   * blackouts included, once this process has started or used the task; before that, by its definition here.
   * @throws CALENDAR_UNKNOWN before that, of a task with a calendar
   */
  next(count?: number): Date[];
}

/** Of a task whose handler stands in a module of its own: where that runs, "thread" where it is not said. It is not stored with the task. */
export type IsolatedOptions = TaskOptions & { isolate?: Isolate };

export type WithSchema<Schema extends StandardSchemaV1> = TaskOptions & { payload: Schema };

/** What a process is asked to do with a task. */
interface Doing {
  enqueue(task: string, payload: unknown, options?: EnqueueOptions): Promise<RunHandle>;
  run(task: string, payload: unknown): Promise<RunHandle>;
  pause(task: string, why: Pick<PauseOptions, "reason" | "until">): Promise<unknown>;
  resume(task: string): Promise<void>;
}

export const handleOf = (doing: Doing, name: string, next: (count: number) => number[]): Task<unknown> => ({
  name,
  enqueue: (payload, options) => doing.enqueue(name, payload, options),
  run: (payload) => doing.run(name, payload),
  pause: async (why = {}) => void (await doing.pause(name, typeof why === "string" ? { reason: why } : why)),
  resume: () => doing.resume(name),
  next: (count = 1) => next(count).map((ms) => new Date(ms)),
});
