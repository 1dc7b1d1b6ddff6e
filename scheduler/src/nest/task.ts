import { SetMetadata } from "@nestjs/common";
import { Reflector } from "@nestjs/core";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { WithSchema } from "../library/task-handle.ts";
import type { TaskType } from "../library/task-type.ts";
import type { Handler } from "../run/handler.ts";
import type { TaskOptions } from "../task/task.ts";

/** The name and options of a task whose handler is a decorated method. */
export interface MethodTask {
  readonly given: string | TaskType;
  readonly options: TaskOptions & { payload?: StandardSchemaV1 };
}

/** Decorates a handler method, with or without TypeScript's option `experimentalDecorators`. */
export interface TaskDecorator<Payload, Result = unknown> {
  <Method extends Handler<Payload, Result>>(
    target: object,
    name: string,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void;
  (method: Handler<Payload, Result>, context: ClassMethodDecoratorContext): void;
}

const key = "carillon:tasks";
const reflector = new Reflector();

/** Returns the tasks that have this method as their handler. */
export const tasksOf = (method: () => unknown): readonly MethodTask[] => reflector.get(key, method) ?? [];

/**
 * Makes a method of a provider or controller the handler of a task; the options include its schedule. One method may handle several tasks.
 * Nest's guards, pipes and interceptors apply only to requests, so they do not apply to runs.
 */
export function Task<Payload, Result, Input>(
  type: TaskType<Payload, Result, Input>,
  options?: TaskOptions,
): TaskDecorator<Payload, Result>;
export function Task<Schema extends StandardSchemaV1>(
  name: string,
  options: WithSchema<Schema>,
): TaskDecorator<StandardSchemaV1.InferOutput<Schema>>;
export function Task(name: string, options?: TaskOptions): TaskDecorator<never>;
export function Task(given: string | TaskType, options: MethodTask["options"] = {}): TaskDecorator<never> {
  return (target: object, _name: unknown, descriptor?: PropertyDescriptor) => {
    const method = descriptor?.value ?? target;
    SetMetadata(key, [...tasksOf(method), { given, options }])(method);
  };
}
