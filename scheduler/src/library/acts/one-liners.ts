import type { Duration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Handler } from "../../run/handler.ts";
import { cron, every, type ScheduleSpec } from "../../schedule/schedule.ts";
import type { TaskOptions } from "../../task/task.ts";
import type { DefineTask, Task } from "../task-handle.ts";

/** The task's options without a schedule. `name` defaults to the name of the handler function. */
export type OneLinerOptions = Omit<TaskOptions, "schedule"> & { name?: string };

/** Defines a task from a schedule and a function. @throws TASK_INVALID, and the errors of the schedule's own check */
export type OneLiner<When, More = unknown> = <Result>(
  when: When,
  handler: Handler<undefined, Result>,
  options?: OneLinerOptions & More,
) => Task<undefined, Result>;

/** Examples: `tower.every("10s", poll)` and `tower.cron("0 9 * * MON-FRI", digest, { zone: "Europe/Berlin" })`. */
export interface OneLiners {
  readonly every: OneLiner<Duration>;
  readonly cron: OneLiner<string, { zone?: string }>;
}

/** The minimum length of a function's name that is used as a task name. Minifiers create shorter names, which change with each build. */
const shortestName = 3;

export const oneLiners = (define: DefineTask): OneLiners => ({
  every: (period, handler, options = {}) => defined(define, every(period), handler, options),
  cron: (expression, handler, { zone, ...options } = {}) =>
    defined(define, cron(expression, zone === undefined ? {} : { zone }), handler, options),
});

/**
 * Defines a task with the option `name`, or else named after its function. The name identifies the task in the cluster, so it
 * must be equal in every process and build.
 */
function defined<Result>(
  define: DefineTask,
  schedule: ScheduleSpec,
  handler: Handler<undefined, Result>,
  { name, ...options }: OneLinerOptions,
): Task<undefined, Result> {
  if (name === undefined && handler.name.length < shortestName)
    throw new CarillonError("TASK_INVALID", `the task has no name: its function's is ${JSON.stringify(handler.name)}`, {
      path: "name",
      hint: 'Give a function with a name of 3 letters or more that the build keeps, or { name: "…" }.',
    });
  return define<undefined, Result>(name ?? handler.name, { ...options, schedule }, handler) as Task<undefined, Result>;
}
