import type { StandardSchemaV1 } from "@standard-schema/spec";
import { limits } from "../base/limits.ts";
import { checkName } from "../task/names.ts";

/** A task's name with the types of its payload and result, for a module that producers and workers share. */
export interface TaskType<Payload = unknown, Result = unknown, Input = Payload> {
  readonly name: string;
  /** Checks payloads both where they are enqueued and where they are run. */
  readonly payload: StandardSchemaV1<Input, Payload> | undefined;
  /** Exists only as a type; never set. */
  readonly result?: Result;
}

/**
 * A task by its name and types, without options and handler: `tower.task(type, options, handler)` defines it in the processes that run it,
 * `tower.producer(type)` enqueues it in any other. @throws TASK_INVALID
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
