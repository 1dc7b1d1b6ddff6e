import { CarillonError } from "../base/errors.ts";
import type { Handler } from "../run/handler.ts";
import type { ScheduleSpec } from "../schedule/schedule.ts";
import type { TaskOptions } from "../task/task.ts";
import type { DefineTask, Task } from "./task-handle.ts";

/** A task's options beside its schedule, and its name; default: the name of its function. */
export type OneLinerOptions = Omit<TaskOptions, "schedule"> & { name?: string };

/** Minifiers give names of a letter or two, and others with each build. */
const shortestName = 3;

/**
 * Defines a task by its schedule and its function alone. The cluster knows the task by its name, so the name must be the same in each
 * process and after each build. @throws TASK_INVALID for a function without a name, or with a minifier's
 */
export function defineScheduled<Result>(
  define: DefineTask,
  schedule: ScheduleSpec,
  handler: Handler<undefined, Result>,
  { name = handler.name, ...options }: OneLinerOptions,
): Task<undefined, Result> {
  if (name.length < shortestName)
    throw new CarillonError("TASK_INVALID", `the task has no name: its function's is ${JSON.stringify(name)}`, {
      path: "name",
      hint: 'Give a function with a name of at least 3 letters that the build keeps, or { name: "…" }.',
    });
  return define<undefined, Result>(name, { ...options, schedule }, handler) as Task<undefined, Result>;
}
