import type { StandardSchemaV1 } from "@standard-schema/spec";
import { limits } from "../base/limits.ts";
import { checkName } from "../task/names.ts";

/** A task's name with the types of its payload and result. It is in a module that both producers and workers import. */
export interface TaskType<Payload = unknown, Result = unknown, Input = Payload> {
  readonly name: string;
  /** Validates payloads both when they are enqueued and before they are handled. */
  readonly payload: StandardSchemaV1<Input, Payload> | undefined;
  /** Carries the type of the result; the property is never set. */
  readonly result?: Result;
}

/**
 * Declares a task's name and types without its options and handler. `tower.task(type, options, handler)` defines the task in the processes
 * that execute it; `tower.producer(type)` enqueues its runs in any other process.
 * @throws TASK_INVALID
 */
export function taskType<Payload = unknown, Result = unknown>(name: string): TaskType<Payload, Result>;
export function taskType<Schema extends StandardSchemaV1, Result = unknown>(
  name: string,
  types: { payload: Schema; result?: StandardSchemaV1<unknown, Result> },
): TaskType<StandardSchemaV1.InferOutput<Schema>, Result, StandardSchemaV1.InferInput<Schema>>;
export function taskType(name: string, { payload }: { payload?: StandardSchemaV1 } = {}): TaskType {
  checkName("a task's name", name, limits.taskNameLength);
  return { name, payload };
}
