import type { EnqueueOptions } from "../../run/enqueue-options.ts";
import type { ResultOf } from "../run-handle.ts";
import type { PayloadOf } from "../task-handle.ts";
import type { TaskType } from "../task-type.ts";

/**
 * The tasks that can be enqueued by name, each with its type. While it is empty, any name is accepted. Applications extend it: `declare
 * module "carillon" { interface TaskRegistry { settle: typeof settle } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: it is for applications to extend.
export interface TaskRegistry {}

export type TaskName = [keyof TaskRegistry] extends [never] ? string : Extract<keyof TaskRegistry, string>;

type TypeOf<Name> = Name extends keyof TaskRegistry ? TaskRegistry[Name] : unknown;
export type InputOf<Name> = TypeOf<Name> extends TaskType<infer _, infer __, infer Input> ? Input : unknown;
/** The arguments after the task's name when a run is enqueued by name: the payload and the options. */
export type EnqueueOne<Name> = [...payload: PayloadOf<InputOf<Name>>, options?: EnqueueOptions];
export type ResultOfTask<Name> = TypeOf<Name> extends TaskType<infer _, infer Result> ? ResultOf<Result> : unknown;
